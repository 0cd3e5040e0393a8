//! The Rust code of README.md and the book, run as documentation tests. `tests/book.rs` fails if a
//! page with Rust code is missing here.

#![cfg(doctest)]

macro_rules! pages {
    ($($page:ident = $path:literal;)*) => {$(
        #[doc = include_str!(concat!("../../../", $path))]
        mod $page {}
    )*};
}

pages! {
    readme = "README.md";
    tutorial = "book/src/tutorial.md";
    communicator = "book/src/reference/communicator.md";
    regions = "book/src/reference/regions.md";
    data = "book/src/reference/data.md";
    errors = "book/src/reference/errors.md";
    selection = "book/src/reference/selection.md";
    local = "book/src/reference/backends/local.md";
    shm = "book/src/reference/backends/shm.md";
    tcp = "book/src/reference/backends/tcp.md";
}
