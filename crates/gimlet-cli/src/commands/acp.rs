//! `gimlet acp`: the agent of an editor or of a program, over the Agent Client Protocol.

use std::io::{self, BufReader, Write};

use gimlet_runtime::Options;

use crate::args::AcpArgs;
use crate::exit::ExitStatus;
use crate::{app, interrupt};

/// Serves one client on standard input and output.
pub(crate) async fn acp(args: AcpArgs) -> anyhow::Result<ExitStatus> {
    let options = Options { trace: (&args.trace).into(), ..Options::from(&args.options) };
    let stop = interrupt::interruptible()?;
    let runtime = app::attended(&args.trace)?;
    gimlet_acp::serve(runtime, options, BufReader::new(io::stdin()), Protocol, stop).await?;
    Ok(ExitStatus::Success)
}

/// Standard output for another program.
struct Protocol;

impl Write for Protocol {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        crate::out::data(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
