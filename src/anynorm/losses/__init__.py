"""What the residuals cost: the losses, what each can do, and the bias that suits them best."""

from anynorm.losses.loss import LOSSES, Constraints, Loss, get_loss

__all__ = ["LOSSES", "Constraints", "Loss", "get_loss"]
