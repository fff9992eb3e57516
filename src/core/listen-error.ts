/** A port that cannot be opened, by a library that does not throw the system's error. The fields are that error's. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  /** `EADDRINUSE` and the like. */
  readonly code: string;
  readonly syscall: 'bind' | 'listen';
  readonly address: string;
  readonly port: number;

  /** @param syscall `bind` for UDP, `listen` for TCP */
  constructor(code: string, syscall: 'bind' | 'listen', address: string, port: number) {
    super(`${syscall} ${code} ${address}:${port}`);
    this.code = code;
    this.syscall = syscall;
    this.address = address;
    this.port = port;
  }
}
