import type { SandboxProcess } from "../../contracts/types.js";
import type { Sandbox } from "../sandbox/types.js";
import { check, equal } from "./assert.js";
import { TextReader } from "./output.js";
import { finishes } from "./script.js";

/** A way to use sockets in a sandbox. */
export interface SocketTool {
  /** Starts a server on 127.0.0.1 that greets each connection with the word. */
  serve(word: string): Promise<{ port: number; process: SandboxProcess }>;
  /** Starts a server that sends back what it gets, and `bye` after the end of that; undefined if there is no such address. */
  echo(host: "127.0.0.1" | "::1", port?: number): Promise<{ port: number; process: SandboxProcess } | undefined>;
  /** What the server sends; undefined if there is no connection within three seconds. */
  connect(host: string, port: number): Promise<string | undefined>;
  /** What the server sends back for a text until it ends the connection; undefined as for `connect`. */
  ask(host: string, port: number, text: string): Promise<string | undefined>;
  /** Makes a Unix socket at this path, relative to the work directory. */
  bind(path: string): Promise<void>;
}

interface Language {
  readonly run: readonly string[];
  readonly probe: string;
  readonly serve: string;
  /** Its arguments are an address and a port, or 0. */
  readonly echo: string;
  readonly connect: string;
  /** Its arguments are an address, a port and a text. */
  readonly ask: string;
  readonly bind: string;
}

/** Perl first: it starts ten times faster than a Python behind a version manager. */
const LANGUAGES: readonly Language[] = [
  {
    run: ["perl", "-MIO::Socket", "-e"],
    probe: "1",
    serve:
      "$|=1;$s=IO::Socket::INET->new(Listen=>9,LocalAddr=>'127.0.0.1');print $s->sockport,\"\\n\";" +
      "while($c=$s->accept){print $c $ARGV[0];close $c}",
    echo:
      "use IO::Socket::IP;$|=1;$s=IO::Socket::IP->new(Listen=>9,ReuseAddr=>1,LocalHost=>$ARGV[0],LocalPort=>$ARGV[1]) or exit 9;" +
      'print $s->sockport,"\\n";while($c=$s->accept){while(sysread($c,$b,65536)){syswrite($c,$b)}syswrite($c,"bye");close $c}',
    connect: "$c=IO::Socket::INET->new(PeerAddr=>$ARGV[0],PeerPort=>$ARGV[1],Timeout=>3) or exit 9;print <$c>",
    ask: "$c=IO::Socket::INET->new(PeerAddr=>$ARGV[0],PeerPort=>$ARGV[1],Timeout=>3) or exit 9;print $c $ARGV[2];print <$c>",
    bind: "use IO::Socket::UNIX;IO::Socket::UNIX->new(Listen=>1,Local=>$ARGV[0]) or exit 9",
  },
  {
    run: ["python3", "-c"],
    probe: "import socket",
    serve:
      "import socket,sys\ns=socket.socket()\ns.bind(('127.0.0.1',0))\ns.listen(9)\nprint(s.getsockname()[1],flush=True)\n" +
      "while 1:\n c=s.accept()[0]\n c.sendall(sys.argv[1].encode())\n c.close()",
    echo:
      "import socket,sys\ns=socket.socket(socket.AF_INET6 if ':' in sys.argv[1] else socket.AF_INET)\n" +
      "s.setsockopt(socket.SOL_SOCKET,socket.SO_REUSEADDR,1)\ntry:\n s.bind((sys.argv[1],int(sys.argv[2])))\nexcept OSError:\n sys.exit(9)\n" +
      "s.listen(9)\nprint(s.getsockname()[1],flush=True)\n" +
      "while 1:\n c=s.accept()[0]\n b=c.recv(65536)\n while b:\n  c.sendall(b)\n  b=c.recv(65536)\n c.sendall(b'bye')\n c.close()",
    connect:
      "import socket,sys\ntry:\n c=socket.create_connection((sys.argv[1],int(sys.argv[2])),3)\n" +
      " print(c.recv(99).decode(),end='')\nexcept OSError as e:\n print(e,file=sys.stderr)\n sys.exit(9)",
    ask:
      "import socket,sys\ntry:\n c=socket.create_connection((sys.argv[1],int(sys.argv[2])),3)\nexcept OSError:\n sys.exit(9)\n" +
      "c.settimeout(None)\nc.sendall(sys.argv[3].encode())\nb=c.recv(65536)\nwhile b:\n print(b.decode(),end='')\n b=c.recv(65536)",
    bind: "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.bind(sys.argv[1])",
  },
  {
    run: ["node", "-e"],
    probe: "require('net')",
    serve:
      "const s=require('net').createServer(c=>{c.on('error',()=>{});c.end(process.argv[1])});" +
      "s.listen(0,'127.0.0.1',()=>console.log(s.address().port))",
    echo:
      "const s=require('net').createServer({allowHalfOpen:true},c=>c.on('error',()=>{}).on('data',b=>{c.write(b)||c.pause()})" +
      ".on('drain',()=>c.resume()).on('end',()=>c.end('bye')));s.on('error',()=>process.exit(9));" +
      "s.listen(+process.argv[2],process.argv[1],()=>console.log(s.address().port))",
    connect:
      "const c=require('net').connect(+process.argv[2],process.argv[1]);c.setTimeout(3000,()=>process.exit(9));" +
      "c.on('error',()=>process.exit(9));c.pipe(process.stdout)",
    ask:
      "const c=require('net').connect(+process.argv[2],process.argv[1],()=>c.write(process.argv[3]));" +
      "c.on('error',()=>process.exit(9));c.pipe(process.stdout)",
    bind: "require('net').createServer().listen(process.argv[1],()=>process.kill(process.pid,'SIGKILL'))",
  },
];

/** The first language in the sandbox that can open a socket; undefined if none can. */
export async function findSocketTool(sandbox: Sandbox): Promise<SocketTool | undefined> {
  for (const language of LANGUAGES) {
    const { exitCode } = await finishes(sandbox, { argv: [...language.run, language.probe] });
    check(typeof exitCode === "number", "exec returned no result");
    if (exitCode === 0) return toTool(sandbox, language);
  }
  return undefined;
}

function toTool(sandbox: Sandbox, { run, serve, echo, connect, ask, bind }: Language): SocketTool {
  const runClient = async (argv: readonly string[]): Promise<string | undefined> => {
    const result = await finishes(sandbox, { argv: [...argv] });
    check([0, 9].includes(result.exitCode), `the client ended with ${result.exitCode}: ${result.stderr}`);
    return result.exitCode === 0 ? result.stdout : undefined;
  };
  return {
    async echo(host, port = 0) {
      const process = await sandbox.spawn({ argv: [...run, echo, host, `${port}`] });
      try {
        const [, said] = await new TextReader(process.stdout).until(/^(\d+)\n/);
        return { port: Number(said), process };
      } catch (error) {
        await process.kill("SIGKILL");
        if ((await process.wait()).exitCode !== 9) throw error;
        return undefined;
      }
    },
    async serve(word) {
      const process = await sandbox.spawn({ argv: [...run, serve, word] });
      const [, port] = await new TextReader(process.stdout).until(/^(\d+)\n/);
      return { port: Number(port), process };
    },
    connect: (host, port) => runClient([...run, connect, host, `${port}`]),
    ask: (host, port, text) => runClient([...run, ask, host, `${port}`, text]),
    async bind(path) {
      await finishes(sandbox, { argv: [...run, bind, path] });
      equal((await sandbox.exec({ argv: ["test", "-S", path] })).exitCode, 0, `${path} is a socket`);
    },
  };
}
