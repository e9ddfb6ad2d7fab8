"""The one error that a person's wrong input raises."""


class UserError(Exception):
    """Wrong use: one sentence that says what to do. The command line prints it and exits with 2."""
