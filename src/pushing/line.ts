import type { Destination } from './destination.ts';
import type { Sink, SinkOptions } from './sink.ts';

type LineEvents = Pick<SinkOptions, 'writable' | 'failed' | 'moved'>;

/** Connection to a destination, which may be made before its session exists. */
export class Line {
  readonly destination: Destination;
  /** Events to open the sink with. */
  readonly events: LineEvents;
  #user: LineEvents | undefined;
  #failure: string | undefined;
  #sink: Sink | undefined;

  /** @param open connects; returns undefined when the connection is no longer wanted @throws errors of `open` */
  static async open(
    destination: Destination,
    open: (destination: Destination, events: LineEvents) => Promise<Sink | undefined>,
  ): Promise<Line | undefined> {
    const line = new Line(destination);
    line.#sink = await open(destination, line.events);
    return line.#sink && line;
  }

  private constructor(destination: Destination) {
    this.destination = destination;
    this.events = {
      writable: () => this.#user?.writable(),
      moved: (url) => this.#user?.moved(url),
      failed: (reason) => {
        this.#failure = reason;
        this.#user?.failed(reason);
      },
    };
  }

  get sink(): Sink {
    return this.#sink as Sink;
  }

  /** Passes events to `user`, including an earlier failure. */
  use(user: LineEvents): void {
    this.#user = user;
    if (this.#failure !== undefined) user.failed(this.#failure);
  }
}
