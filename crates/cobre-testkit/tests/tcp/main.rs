//! Jobs over sockets as a user without a launcher starts them: real processes, with their settings
//! in the environment, on one host and on several.

mod by_hosts;
mod hostile;
mod hosts;
mod loss;
mod many;
mod network;
#[path = "../port/mod.rs"]
mod port;
mod proxy;
mod sniffed;
mod sockets;
mod start;
mod users;
