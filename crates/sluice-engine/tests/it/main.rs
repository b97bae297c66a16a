//! The engine on real stores, in real time, in processes that are really killed.

mod attack_approvals;
mod attack_gates;
mod care;
mod crowd;
mod disk;
mod feed;
mod gate;
mod keys;
mod moderation;
mod observe;
mod office;
mod orphan;
mod poison;
mod processes;
mod provenance;
mod recovery;
mod restart;
mod runs;
mod schedules;
mod snapshots;
mod streams;
mod team;
mod thousand;
mod tools;
mod victim;
mod world;
