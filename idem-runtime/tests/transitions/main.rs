//! Proves what every event makes of every state, as tables; and that no script of
//! events breaks what a record promises.

#[cfg(test)]
mod row;
#[cfg(test)]
mod scene;
#[cfg(test)]
mod script;
#[cfg(test)]
mod table;
#[cfg(test)]
mod unleased;
