import {
  BaseCodeExecutor,
  BaseEnvironment,
  CodeExecutionResult,
  ExecuteCodeParams,
  ExecutionResult,
} from "@google/adk";

interface AdkOptions extends OpenOptions {
  sandbox?: Sandbox;
}

declare const BaseCodeExecutor$1: typeof BaseCodeExecutor;

declare const BaseEnvironment$1: typeof BaseEnvironment;

interface CodeExecutorOptions extends AdkOptions {
  timeoutSeconds?: number;
}

declare class GloveboxCodeExecutor extends BaseCodeExecutor$1 {
  #private;
  constructor(options?: CodeExecutorOptions);
  override executeCode({ invocationContext, codeExecutionInput }: ExecuteCodeParams): Promise<CodeExecutionResult>;
  close(): Promise<void>;
}

declare class GloveboxEnvironment extends BaseEnvironment$1 {
  #private;
  constructor(options?: AdkOptions);
  override initialize(): Promise<void>;
  override close(): Promise<void>;
  get sandbox(): Sandbox;
  override get workingDir(): string;
  override execute(command: string, timeoutSeconds?: number): Promise<ExecutionResult>;
  override readFile(filePath: string): Promise<Uint8Array>;
  override writeFile(filePath: string, content: string | Uint8Array): Promise<void>;
}

export { AdkOptions, CodeExecutorOptions, GloveboxCodeExecutor, GloveboxEnvironment };
