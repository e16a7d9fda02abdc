"""Newton's method over rows that live apart, whatever the regulariser."""
