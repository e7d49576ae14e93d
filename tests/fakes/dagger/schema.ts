/**
 * What an engine of version 0.21 answers to, as far as the stand-in has the types: names, arguments and results of the published
 * schema. `dagger-schema.test.ts` compares it with the installed SDK.
 */
export const SCHEMA = /* GraphQL */ `
interface Node {
  id: ID!
}

type Query implements Node {
  changeset: Changeset!
  container(platform: Platform): Container!
  defaultPlatform: Platform!
  directory: Directory!
  file(name: String!, contents: String!, permissions: Int = 420): File!
  host: Host!
  http(url: String!, name: String, permissions: Int, checksum: String, authHeader: ID @expectedType(name: "Secret"), experimentalServiceHost: ID @expectedType(name: "Service")): File!
  id: ID!
  node(id: ID!): Node
  secret(uri: String!, cacheKey: String): Secret!
  setSecret(name: String!, plaintext: String!): Secret!
  version: String!
}

type Host implements Node {
  containerImage(name: String!): Container!
  directory(path: String!, exclude: [String!] = [], include: [String!] = [], noCache: Boolean = false, gitignore: Boolean = false): Directory!
  file(path: String!, noCache: Boolean = false): File!
  findUp(name: String!, noCache: Boolean = false): String
  id: ID!
  service(ports: [PortForward!]!, host: String = "localhost"): Service!
  tunnel(service: ID! @expectedType(name: "Service"), native: Boolean = false, ports: [PortForward!] = []): Service!
}

type Container implements Node {
  asService(args: [String!] = [], useEntrypoint: Boolean = false, experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false, expand: Boolean = false, noInit: Boolean = false): Service!
  asTarball(platformVariants: [ID!] = [] @expectedType(name: "Container"), forcedCompression: ImageLayerCompression, mediaTypes: ImageMediaTypes = OCIMediaTypes): File!
  combinedOutput: String!
  defaultArgs: [String!]!
  directory(path: String!, expand: Boolean = false): Directory!
  entrypoint: [String!]!
  envVariable(name: String!): String
  envVariables: [EnvVariable!]!
  exists(path: String!, expectedType: ExistsType, doNotFollowSymlinks: Boolean = false, expand: Boolean = false): Boolean!
  exitCode: Int!
  experimentalWithAllGPUs: Container!
  experimentalWithGPU(devices: [String!]!): Container!
  export(path: String!, platformVariants: [ID!] = [] @expectedType(name: "Container"), forcedCompression: ImageLayerCompression, mediaTypes: ImageMediaTypes = OCIMediaTypes, expand: Boolean = false): String!
  exportImage(name: String!, platformVariants: [ID!] = [] @expectedType(name: "Container"), forcedCompression: ImageLayerCompression, mediaTypes: ImageMediaTypes = OCIMediaTypes): Void!
  file(path: String!, expand: Boolean = false): File!
  from(address: String!, registryService: ID @expectedType(name: "Service")): Container!
  id: ID!
  imageRef: String!
  import(source: ID! @expectedType(name: "File"), tag: String = ""): Container!
  label(name: String!): String
  mounts: [String!]!
  platform: Platform!
  publish(address: String!, platformVariants: [ID!] = [] @expectedType(name: "Container"), forcedCompression: ImageLayerCompression, mediaTypes: ImageMediaTypes = OCIMediaTypes, registryService: ID @expectedType(name: "Service")): String!
  rootfs: Directory!
  stderr: String!
  stdout: String!
  sync: ID! @expectedType(name: "Container")
  terminal(cmd: [String!] = [], experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false): Container!
  up(random: Boolean = false, ports: [PortForward!] = [], args: [String!] = [], useEntrypoint: Boolean = false, experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false, expand: Boolean = false, noInit: Boolean = false): Void
  user: String!
  withAnnotation(name: String!, value: String!): Container!
  withDefaultArgs(args: [String!]!): Container!
  withDefaultTerminalCmd(args: [String!]!, experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false): Container!
  withDirectory(path: String!, source: ID! @expectedType(name: "Directory"), exclude: [String!] = [], include: [String!] = [], gitignore: Boolean = false, owner: String = "", expand: Boolean = false, permissions: Int): Container!
  withDockerHealthcheck(args: [String!]!, shell: Boolean, interval: String, timeout: String, startPeriod: String, startInterval: String, retries: Int): Container!
  withEntrypoint(args: [String!]!, keepDefaultArgs: Boolean = false): Container!
  withEnvFileVariables(source: ID! @expectedType(name: "EnvFile")): Container!
  withEnvVariable(name: String!, value: String!, expand: Boolean = false): Container!
  withError(err: String!): Container!
  withExec(args: [String!]!, useEntrypoint: Boolean = false, stdin: String = "", redirectStdin: String = "", redirectStdout: String = "", redirectStderr: String = "", expect: ReturnType = SUCCESS, experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false, expand: Boolean = false, noInit: Boolean = false): Container!
  withExposedPort(port: Int!, protocol: NetworkProtocol = TCP, description: String, experimentalSkipHealthcheck: Boolean = false): Container!
  withFile(path: String!, source: ID! @expectedType(name: "File"), permissions: Int, owner: String = "", expand: Boolean = false): Container!
  withFiles(path: String!, sources: [ID!]! @expectedType(name: "File"), permissions: Int, owner: String = "", expand: Boolean = false): Container!
  withLabel(name: String!, value: String!): Container!
  withMountedCache(path: String!, cache: ID! @expectedType(name: "CacheVolume"), source: ID @expectedType(name: "Directory"), sharing: CacheSharingMode = SHARED, owner: String = "", expand: Boolean = false): Container!
  withMountedDirectory(path: String!, source: ID! @expectedType(name: "Directory"), owner: String = "", readOnly: Boolean = false, expand: Boolean = false): Container!
  withMountedFile(path: String!, source: ID! @expectedType(name: "File"), owner: String = "", expand: Boolean = false): Container!
  withMountedSecret(path: String!, source: ID! @expectedType(name: "Secret"), owner: String = "", mode: Int = 256, expand: Boolean = false): Container!
  withMountedTemp(path: String!, size: Int, expand: Boolean = false): Container!
  withNewFile(path: String!, contents: String!, permissions: Int = 420, owner: String = "", expand: Boolean = false): Container!
  withRegistryAuth(address: String!, username: String!, secret: ID! @expectedType(name: "Secret")): Container!
  withRootfs(directory: ID! @expectedType(name: "Directory")): Container!
  withSecretVariable(name: String!, secret: ID! @expectedType(name: "Secret")): Container!
  withServiceBinding(alias: String!, service: ID! @expectedType(name: "Service")): Container!
  withSymlink(target: String!, linkName: String!, expand: Boolean = false): Container!
  withUnixSocket(path: String!, source: ID! @expectedType(name: "Socket"), owner: String = "", expand: Boolean = false): Container!
  withUser(name: String!): Container!
  withVolatileVariable(name: String!, value: String!): Container!
  withWorkdir(path: String!, expand: Boolean = false): Container!
  withoutAnnotation(name: String!): Container!
  withoutDefaultArgs: Container!
  withoutDirectory(path: String!, expand: Boolean = false): Container!
  withoutDockerHealthcheck: Container!
  withoutEntrypoint(keepDefaultArgs: Boolean = false): Container!
  withoutEnvVariable(name: String!): Container!
  withoutExposedPort(port: Int!, protocol: NetworkProtocol = TCP): Container!
  withoutFile(path: String!, expand: Boolean = false): Container!
  withoutFiles(paths: [String!]!, expand: Boolean = false): Container!
  withoutLabel(name: String!): Container!
  withoutMount(path: String!, expand: Boolean = false): Container!
  withoutRegistryAuth(address: String!): Container!
  withoutSecretVariable(name: String!): Container!
  withoutUnixSocket(path: String!, expand: Boolean = false): Container!
  withoutUser: Container!
  withoutVolatileVariable(name: String!): Container!
  withoutWorkdir: Container!
  workdir: String!
}

type Directory implements Node {
  changes(from: ID! @expectedType(name: "Directory")): Changeset!
  chown(path: String!, owner: String!): Directory!
  diff(other: ID! @expectedType(name: "Directory")): Directory!
  digest: String!
  directory(path: String!): Directory!
  dockerBuild(dockerfile: String = "Dockerfile", platform: Platform, buildArgs: [BuildArg!] = [], target: String = "", secrets: [ID!] = [] @expectedType(name: "Secret"), noInit: Boolean = false, ssh: ID @expectedType(name: "Socket")): Container!
  entries(path: String): [String!]!
  exists(path: String!, expectedType: ExistsType, doNotFollowSymlinks: Boolean = false): Boolean!
  export(path: String!, wipe: Boolean = false): String!
  file(path: String!): File!
  filter(exclude: [String!] = [], include: [String!] = [], gitignore: Boolean = false): Directory!
  findUp(name: String!, start: String!): String
  glob(pattern: String!): [String!]!
  id: ID!
  name: String!
  sync: ID! @expectedType(name: "Directory")
  terminal(container: ID @expectedType(name: "Container"), cmd: [String!] = [], experimentalPrivilegedNesting: Boolean = false, insecureRootCapabilities: Boolean = false): Directory!
  withChanges(changes: ID! @expectedType(name: "Changeset")): Directory!
  withDirectory(path: String!, source: ID! @expectedType(name: "Directory"), exclude: [String!] = [], include: [String!] = [], gitignore: Boolean = false, owner: String = "", permissions: Int): Directory!
  withError(err: String!): Directory!
  withFile(path: String!, source: ID! @expectedType(name: "File"), permissions: Int, owner: String = ""): Directory!
  withFiles(path: String!, sources: [ID!]! @expectedType(name: "File"), permissions: Int): Directory!
  withNewDirectory(path: String!, permissions: Int = 420): Directory!
  withNewFile(path: String!, contents: String!, permissions: Int = 420): Directory!
  withPatch(patch: String!): Directory!
  withPatchFile(patch: ID! @expectedType(name: "File")): Directory!
  withSymlink(target: String!, linkName: String!): Directory!
  withTimestamps(timestamp: Int!): Directory!
  withoutDirectory(path: String!): Directory!
  withoutFile(path: String!): Directory!
  withoutFiles(paths: [String!]!): Directory!
}

type File implements Node {
  chown(owner: String!): File!
  contents(offsetLines: Int, limitLines: Int): String!
  digest(excludeMetadata: Boolean = false): String!
  export(path: String!, allowParentDirPath: Boolean = false): String!
  id: ID!
  name: String!
  size: Int!
  sync: ID! @expectedType(name: "File")
  withName(name: String!): File!
  withReplaced(search: String!, replacement: String!, all: Boolean = false, firstFrom: Int): File!
  withTimestamps(timestamp: Int!): File!
}

type Changeset implements Node {
  addedPaths: [String!]!
  after: Directory!
  asPatch: File!
  before: Directory!
  export(path: String!): String!
  id: ID!
  isEmpty: Boolean!
  layer: Directory!
  modifiedPaths: [String!]!
  removedPaths: [String!]!
  sync: ID! @expectedType(name: "Changeset")
  withChangeset(changes: ID! @expectedType(name: "Changeset"), onConflict: ChangesetMergeConflict = FAIL): Changeset!
  withChangesets(changes: [ID!]! @expectedType(name: "Changeset"), onConflict: ChangesetsMergeConflict = FAIL): Changeset!
}

type Service implements Node {
  endpoint(port: Int, scheme: String = ""): String!
  hostname: String!
  id: ID!
  start: ID! @expectedType(name: "Service")
  stop(kill: Boolean = false): ID! @expectedType(name: "Service")
  sync: ID! @expectedType(name: "Service")
  terminal(cmd: [String!] = []): Service!
  up(ports: [PortForward!] = [], random: Boolean = false): Void
  withHostname(hostname: String!): Service!
}

type Secret implements Node {
  id: ID!
  name: String!
  plaintext: String!
  uri: String!
}

type EnvVariable implements Node {
  id: ID!
  name: String!
  value: String!
}

input BuildArg { name: String!, value: String! }
enum CacheSharingMode { SHARED PRIVATE LOCKED }
enum ChangesetMergeConflict { FAIL_EARLY FAIL LEAVE_CONFLICT_MARKERS PREFER_OURS PREFER_THEIRS }
enum ChangesetsMergeConflict { FAIL_EARLY FAIL }
enum ExistsType { REGULAR_TYPE DIRECTORY_TYPE SYMLINK_TYPE }
enum ImageLayerCompression { Gzip Zstd EStarGZ Uncompressed GZIP ZSTD ESTARGZ UNCOMPRESSED }
enum ImageMediaTypes { OCIMediaTypes DockerMediaTypes OCI DOCKER }
enum NetworkProtocol { TCP UDP }
scalar Platform
input PortForward { frontend: Int, backend: Int!, protocol: NetworkProtocol = TCP }
enum ReturnType { SUCCESS FAILURE ANY }
scalar Void

directive @expectedType(name: String!) on ARGUMENT_DEFINITION | FIELD_DEFINITION
`;
