/**
 * What may be reached, as an entry of `network.allow`, or what must not, as an entry of `network.deny`. The TLS of a host with `methods`, `paths` or
 * `git` ends at the proxy, which checks each request.
 */
export interface NetworkRule {
  /** A name, `*.name` for everything below it, or an address. `host-loopback`, with a port, is the loopback of the host. */
  host: string;
  /** Default: 80 and 443; in `deny`, every port. */
  port?: number;
  /** Methods in upper case; `GET` includes `HEAD`. Default: all. */
  methods?: readonly string[];
  /**
   * Patterns of whole paths: `*` stands for any text within a segment, `**` for any segments. Together with `git`, the paths of repositories.
   * Default: all.
   */
  paths?: readonly string[];
  /** Only what git needs over HTTP: `fetch` to clone and fetch, `push` for that and to push. In `deny`: the one that it names. */
  git?: "fetch" | "push";
  /** The host has a private address, and may be reached only by one. Default false. Not in `deny`. */
  private?: boolean;
  /** Connections need not use TLS. Needs `port`. Default false. Not in `deny`. */
  plain?: boolean;
}

/** What a sandbox may reach through its proxy. */
export interface NetworkRules {
  /** Names as `host`, `host:port`, `*.host` or `plain://host:port`, or rules. */
  allow: readonly (string | NetworkRule)[];
  /** What must not be reached, though `allow` has it. */
  deny?: readonly (string | NetworkRule)[];
  /**
   * The proxy of your organisation, as `http://host:port`; connections go through it by CONNECT, except those to private hosts. `none`: no proxy.
   * Default: HTTPS_PROXY, HTTP_PROXY and NO_PROXY of this process. A password can be in these variables only.
   */
  upstream?: string;
  /** Absolute path of a PEM file with further authorities that certificates may come from, for the proxy and for programs in the sandbox. */
  ca?: string;
}

/**
 * `none`: loopback only. `full`: the host's network. Otherwise only what the rules allow. Connections must use TLS, unless an entry says `plain`.
 */
export type NetworkPolicy = "none" | "full" | NetworkRules;

/** Something that the network rules of a sandbox do not allow, as `onBlocked` gets it. The program inside chose it. */
export interface BlockedRequest {
  /** The name or address: letters, digits, dots, dashes and colons. */
  readonly host: string;
  readonly port: number;
  /** `not_allowed`: no entry of `network.allow` has this host and port. `request_not_allowed`: the rules of the host exclude this request. */
  readonly reason: "not_allowed" | "request_not_allowed";
  /** Only of requests that can be read: over plain HTTP, or to a host whose requests have rules. */
  readonly method?: string;
  /** Of the same requests, without the query: 1024 printable characters at most. */
  readonly path?: string;
}

/** What `onBlocked` answers: let this one pass, allow the host or the request from now on, or refuse. */
export type BlockedAnswer = "allow-once" | "allow" | "deny";

/** Where the value of a secret comes from. It is read when the sandbox is opened, and never written down. */
export type SecretSource =
  /** A variable of this process. */
  | { env: string }
  /** A file that only you can read, by its absolute path: outside every repository and outside everything that the sandbox sees. */
  | { file: string }
  /**
   * A program that prints the value on one line, or `{ "value": …, "expiresAt": … }` with an ISO 8601 time. A value that expires is fetched again in
   * time. No shell is involved. `timeout` is in milliseconds; default 30 000.
   */
  | { command: readonly string[]; timeout?: number }
  /**
   * The key file of a Google service account, which needs `scopes`, or what `gcloud auth application-default login` wrote. The value is a token that
   * lasts an hour at most, fetched by this machine.
   */
  | { google: { file: string; scopes?: readonly string[] } }
  /**
   * A login that is kept in a private file: JSON with a `refresh_token`, and a `client_secret` if the endpoint wants one. The value is an access token.
   * This machine refreshes it and writes the next refresh token to the file; processes that share the file take turns. Nothing else may use that token.
   */
  | { oauth: { store: string; tokenUrl: string; clientId?: string; scope?: string } };

/** A secret that commands can use but never see. Its variable contains a placeholder, and the value is put in on the way to its hosts. */
export interface SecretRule {
  /** Who gets it: `host`, which means port 443, or `host:port`. `network.allow` must have them. */
  hosts: readonly string[];
  /** The only header in which the placeholder is replaced. Default: every header. Only with `in: "header"`. */
  header?: string;
  /** Where in a request the placeholder is replaced. Default `header`. */
  in?: "header" | "query" | "body";
  /** Default: the variable of this process that has the same name. */
  from?: SecretSource;
  /**
   * `aws`, for the secret AWS_SECRET_ACCESS_KEY: commands get keys that open nothing in it and in AWS_ACCESS_KEY_ID, and what they sign with those is
   * signed anew with the real keys. These come from the variables that AWS's programs read, from a credentials file, or from a program that prints
   * what `aws configure export-credentials` prints.
   */
  sign?: "aws";
  /**
   * For programs that log in by themselves: the addresses of the token endpoints, to which `hosts` are added. Tokens in their answers are replaced by
   * placeholders before they enter the sandbox, and put back in requests to these endpoints and to `hosts`. They are kept until the sandbox is closed.
   * There is no value, and no variable is set.
   */
  login?: { tokenUrls: readonly string[] };
  /**
   * The user name with which `git` sends this secret as a password over https, such as `x-access-token` for GitHub: git in the sandbox is set up to
   * answer its hosts with the placeholder. Only in headers. Default: git is not set up.
   */
  git?: string;
  /** What the placeholder starts with, for programs that check it, such as `sk-ant-`. Commands see it. Default: nothing of the value's. */
  prefix?: string;
  /** Accept hosts such as `*.example.com`. Whoever controls one name below it can have the value. Default false. */
  force?: boolean;
}

/** One line of an audit log, and of `glovebox net --json`: a connection, a request in it, its end, or a refusal. Never contents, and no queries. */
export interface NetworkEvent {
  /** Of this form. */
  readonly version: 1;
  /** ISO 8601. */
  readonly time: string;
  /** The id of the sandbox. */
  readonly sandbox: string;
  /** Counts from 1 in each opening of a sandbox; the lines of one connection have the same. */
  readonly connection: number;
  /** `request`: one that the proxy could read, in a connection that was opened before. */
  readonly event: "open" | "request" | "close" | "blocked";
  readonly decision: "allowed" | "denied";
  /** What allowed it: an entry of `network.allow`, or `onBlocked`. What denied it: the reason, such as `not_allowed` or `not_public`. */
  readonly rule: string;
  /** A name or an address, as the program wrote it. */
  readonly host: string;
  /** Absent if it could not be read. */
  readonly port?: number;
  /** Only of requests that the proxy can read. */
  readonly method?: string;
  /** Names of the secrets whose values were put into requests of the connection, and of logins whose tokens were put in or taken out. */
  readonly secrets?: readonly string[];
  /** Bytes that the program sent, and received, TLS included. Only of `close`. */
  readonly sent?: number;
  readonly received?: number;
  /** Milliseconds. Only of `close`. */
  readonly durationMs?: number;
}

/** A time in which a sandbox reaches more hosts than its rule allows. Disposing it closes it. */
export interface NetworkWindow extends AsyncDisposable {
  /** Variables for the commands that use it. */
  readonly env: Readonly<Record<string, string>>;
  /** Restore the rule of the sandbox, and cut every connection that was made in the meantime. Idempotent. */
  close(): Promise<void>;
}
