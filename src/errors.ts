/**
 * Every error that Kiln tells a client, by name: HTTP status and message text.
 * The management API wraps the text as `[HTTP] <text> (<status>)` (facts/01-rest-api.md section 1).
 */
const table = {
  vhostNotFound: [404, (vhost: string) => `Could not find the virtual host: [${vhost}]`],
  applicationNotFound: [404, (vhost: string, app: string) => `Could not find the application: [${vhost}/${app}]`],
  streamNotFound: [404, (internalName: string) => `Could not find the stream: [${internalName}]`],
  profileNotFound: [404, (path: string) => `Could not find the output profile: [${path}]`],
  controllerNotFound: [404, () => 'Controller not found'],
  vhostExists: [409, (vhost: string) => `The virtual host already exists: [${vhost}]`],
  applicationExists: [409, (vhost: string, app: string) => `Could not create the application: [${vhost}/${app}] already exists`],
  streamExists: [409, () => 'Stream already exists'],
  tooManyConnections: [503, (limit: number) => `Too many connections: ${limit} are allowed`],
  accessDenied: [401, (module: string) => `Access control is configured for ${module} and cannot be checked: refused`],
} as const satisfies Record<string, readonly [number, (...args: never[]) => string]>;

export type ErrorCode = keyof typeof table;

/** An error with an entry in the table. `code` is the entry's name, `status` its HTTP status. */
export class KilnError extends Error {
  readonly code: ErrorCode;
  readonly status: number;

  constructor(code: ErrorCode, status: number, message: string) {
    super(message);
    this.name = 'KilnError';
    this.code = code;
    this.status = status;
  }
}

/** Makes the error named `code` from the parts its text needs. */
export function kilnError<C extends ErrorCode>(code: C, ...args: Parameters<(typeof table)[C][1]>): KilnError {
  const [status, text] = table[code];
  return new KilnError(code, status, (text as (...parts: unknown[]) => string)(...args));
}
