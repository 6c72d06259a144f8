//! Makes the arguments fit the tool's schema, or says why they do not. After this layer they do not change any more.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use gimlet_reply::arguments::Arguments;

use super::{Layer, Outcome, Pass};

pub(super) struct Validate {
    pub inner: Box<dyn Layer>,
    pub arguments: Arguments,
}

impl Layer for Validate {
    fn pass<'a>(&'a self, pass: &'a mut Pass) -> BoxFuture<'a, Outcome> {
        async move {
            match self.arguments.fit(pass.call.args.clone()) {
                Ok(args) => {
                    pass.call.args = args;
                    self.inner.pass(pass).await
                }
                Err(failure) => Outcome::Failed(Box::new(failure)),
            }
        }
        .boxed()
    }
}
