import type { RtspConnection } from './connection.ts';
import { RtspError } from './error.ts';

const GET_PARAMETER = 'GET_PARAMETER';
const OPTIONS = 'OPTIONS';
const NO_SESSION = 454;
const REFUSED = 400;
const TIMES = 3;

/** Tells a server, three times in the time that it waits for it, that the client is there. */
export class KeepAlive {
  readonly #connection: RtspConnection;
  readonly #uri: string;
  readonly #timer: NodeJS.Timeout;
  #method: string;

  /** @param methods that the server has, as it says; none where it does not say */
  constructor(connection: RtspConnection, uri: string, methods: ReadonlySet<string>, timeoutSeconds: number) {
    this.#connection = connection;
    this.#uri = uri;
    this.#method = methods.size === 0 || methods.has(GET_PARAMETER) ? GET_PARAMETER : OPTIONS;
    this.#timer = setInterval(() => void this.#tell(), (timeoutSeconds * 1000) / TIMES).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #tell(): Promise<void> {
    try {
      const { status } = await this.#connection.ask(this.#method, this.#uri);
      if (status === NO_SESSION) this.#connection.end('the server no longer knows the session');
      else if (status >= REFUSED) this.#method = OPTIONS;
    } catch (error) {
      if (!(error instanceof RtspError)) this.#connection.fail(error);
      // a server that is busy with its media may leave out the answer: whether it is there its media tells
    }
  }
}
