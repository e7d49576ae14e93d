//! Asks a server with the key of the variable TEST_KEY by the system's TLS library, and prints the answer.
use std::{env, error::Error, sync::Arc};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let (url, size) = (&arguments[1], arguments[2].parse::<usize>()?);
    let proxy = ureq::Proxy::new(env::var("https_proxy")?)?;
    let tls = Arc::new(native_tls::TlsConnector::new()?);
    let agent = ureq::AgentBuilder::new().proxy(proxy).tls_connector(tls).build();
    let key = env::var("TEST_KEY")?;
    let answer = if size > 0 {
        agent.post(url).set("x-api-key", &key).send_bytes(&vec![0; size])?
    } else {
        agent.get(url).set("x-api-key", &key).call()?
    };
    print!("{}", answer.into_string()?);
    Ok(())
}
