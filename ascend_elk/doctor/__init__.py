"""What is wrong with the logs of a training host, or with the stack that takes them in, and what to do."""
