//! What keeps devices busy and memory bounded: the pinned arena, the budget, partitions on slots, jobs and the timeline.
pub mod arena;
pub mod budget;
pub mod failure;
pub mod ids;
pub mod scheduler;
