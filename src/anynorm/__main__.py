"""``python -m anynorm``: the same as the command ``anynorm``."""

from anynorm.app.cli import main

if __name__ == "__main__":
    main()
