import type { RtspConnection } from './connection.ts';
import { RtspError } from './error.ts';

const GET_PARAMETER = 'GET_PARAMETER';
const OPTIONS = 'OPTIONS';
const NO_SESSION = 454;
const REFUSED = 400;
const TIMES = 3;

/**
 * Keeps the session alive with three requests per session timeout: GET_PARAMETER, or OPTIONS where that is rejected (RFC 2326
 * sections 10.1 and 10.8). While GET_PARAMETER is not answered the two alternate: a server that ignores it gets OPTIONS in
 * time, and one that is only busy may count the other.
 */
export class KeepAlive {
  readonly #connection: RtspConnection;
  readonly #uri: string;
  readonly #timer: NodeJS.Timeout;
  #isRefused: boolean;
  /** The latest GET_PARAMETER was not answered. */
  #isUnanswered = false;

  /** @param methods that the server announced; empty where it announced none */
  constructor(connection: RtspConnection, uri: string, methods: ReadonlySet<string>, timeoutSeconds: number) {
    this.#connection = connection;
    this.#uri = uri;
    this.#isRefused = methods.size > 0 && !methods.has(GET_PARAMETER);
    this.#timer = setInterval(() => void this.#tell(), (timeoutSeconds * 1000) / TIMES).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #tell(): Promise<void> {
    const method = this.#isRefused || this.#isUnanswered ? OPTIONS : GET_PARAMETER;
    this.#isUnanswered = method === GET_PARAMETER;
    try {
      const { status } = await this.#connection.ask(method, this.#uri);
      if (method === GET_PARAMETER) this.#isUnanswered = false;
      if (status === NO_SESSION) this.#connection.end('the server no longer knows the session');
      else if (status >= REFUSED && method === GET_PARAMETER) this.#isRefused = true;
    } catch (error) {
      if (!(error instanceof RtspError)) this.#connection.fail(error);
      // a server that is busy with media may not answer: its media shows that it is alive
    }
  }
}
