import { HttpConnection } from '../http-connection.ts';
import { serve } from '../program.ts';
import { monotonic } from '../stamp.ts';
import { percentile } from '../statistics.ts';

const STAMP = 8;

/** Bytes of a rendition's chunklist and of its part. */
interface Rendition {
  readonly chunklist: number;
  readonly part: number;
}

interface HeldOptions {
  readonly port: number;
  readonly count: number;
  /** Parts are asked for before they are there, as a preload hint lets players do. */
  readonly hints: boolean;
  /** Delays are those of the first one. */
  readonly renditions: readonly Rendition[];
}

let delays: number[] = [];
let connections: HttpConnection[] = [];

function connect(port: number): HttpConnection {
  const connection = new HttpConnection(port);
  connections.push(connection);
  return connection;
}

/** Asks for a chunklist and a part again and again, until its connections are closed. */
async function play({ port, hints }: HeldOptions, { chunklist, part }: Rendition, isTimed: boolean): Promise<void> {
  const [playlists, media] = [connect(port), connect(port)];
  for (;;) {
    const ahead = hints ? media.get(`/held/${part}`) : undefined;
    // what fails meanwhile is told where it is awaited
    ahead?.catch(() => {});
    await playlists.get(`/held/${chunklist}`);
    const { body } = await (ahead ?? media.get(`/now/${part}`));
    if (isTimed) delays.push(monotonic() - body.readDoubleBE(body.length - STAMP));
  }
}

const commands = {
  start(options: HeldOptions): void {
    for (let i = 0; i < options.count; i++)
      for (const [at, rendition] of options.renditions.entries()) {
        const mine = connections;
        play(options, rendition, at === 0).catch((error: Error) => {
          // the connections of a stopped player are not in the list any more
          if (mine === connections) throw error;
        });
      }
  },

  /** Forgets the delays so far. */
  reset(_: undefined): void {
    delays = [];
  },

  /** Milliseconds from a tick of the server to a part at a player. */
  report(_: undefined): { p50: number; p99: number } {
    return { p50: percentile(delays, 0.5), p99: percentile(delays, 0.99) };
  },

  stop(_: undefined): void {
    const ended = connections;
    connections = [];
    for (const connection of ended) connection.close();
  },
};

export type WatchHeldCommands = typeof commands;

serve(commands);
