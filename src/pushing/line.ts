import type { Destination } from './destination.ts';
import type { Sink, SinkOptions } from './sink.ts';

type LineEvents = Pick<SinkOptions, 'writable' | 'failed' | 'moved'>;

/** A connection to a destination, which may be made before there is somebody to use it. */
export class Line {
  readonly destination: Destination;
  /** For the sink that is opened. */
  readonly events: LineEvents;
  #user: LineEvents | undefined;
  #failure: string | undefined;
  #sink: Sink | undefined;

  /** @param open connects; undefined when that is not wanted any more @throws what `open` does */
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

  /** What happens is told to `user`, a failure also when that was before. */
  use(user: LineEvents): void {
    this.#user = user;
    if (this.#failure !== undefined) user.failed(this.#failure);
  }
}
