import type { RtspConnection } from './connection.ts';
import { RtspError } from './error.ts';

const GET_PARAMETER = 'GET_PARAMETER';
const OPTIONS = 'OPTIONS';
const NO_SESSION = 454;
const REFUSED = 400;
const TIMES = 3;

/**
 * Tells a server, three times in the time that it waits for it, that the client is there: by GET_PARAMETER, or by OPTIONS
 * where that is refused (RFC 2326 sections 10.1 and 10.8). While GET_PARAMETER is not answered the two take turns: a server
 * that ignores it has OPTIONS in time, and one that is only busy may count the other.
 */
export class KeepAlive {
  readonly #connection: RtspConnection;
  readonly #uri: string;
  readonly #timer: NodeJS.Timeout;
  #isRefused: boolean;
  /** GET_PARAMETER was sent last, and not answered. */
  #isUnanswered = false;

  /** @param methods that the server has, as it says; none where it does not say */
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
      // a server that is busy with its media may leave out the answer: whether it is there its media tells
    }
  }
}
