//! Loads, sandboxes and runs circuit components.
