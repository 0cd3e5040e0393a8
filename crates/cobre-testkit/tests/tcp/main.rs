//! Jobs over sockets as a user without a launcher starts them: real processes, with their settings
//! in the environment, on one host and on several.

mod hostile;
mod hosts;
mod loss;
mod proxy;
mod sockets;
mod start;
mod users;
