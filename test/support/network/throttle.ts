import { faulty, UdpRelay, type Way } from './udp-relay.ts';
import { seeded } from '../../unit/codecs/vectors.ts';

export interface Link {
  /** What it carries towards the client; Infinity where it is free. */
  bitsPerSecond: number;
  /** What waits longer than this in front of it is lost. */
  queueMs: number;
  /** Every packet takes so long, and up to as much again by chance. */
  delayMs: number;
}

const HEADERS = 28;
const FREE: Link = { bitsPerSecond: Infinity, queueMs: 200, delayMs: 0 };
const unhindered = faulty({ seed: 0 });

/** A narrow link on loopback, without any rights: what comes back from a server waits in a queue that empties at a given rate. */
export class Throttle {
  readonly link: Link;
  readonly #relay: UdpRelay;

  private constructor(link: Link, relay: UdpRelay) {
    this.link = link;
    this.#relay = relay;
  }

  /** @param server port on loopback that it leads to */
  static async open(server: number, seed = 1): Promise<Throttle> {
    const link = { ...FREE };
    const narrow = narrowWay(link, seed);
    return new Throttle(
      link,
      await UdpRelay.open(server, (client, direction) =>
        direction === 'toClient' ? narrow : unhindered(client, direction),
      ),
    );
  }

  get port(): number {
    return this.#relay.port;
  }

  /** A description of the server, as one of what is behind the link. */
  rewrite(sdp: string): string {
    return sdp.replaceAll(`127.0.0.1 ${this.#relay.server} `, `127.0.0.1 ${this.port} `);
  }

  close(): void {
    this.#relay.close();
  }
}

/** One for all clients. */
function narrowWay(link: Link, seed: number): Way {
  const chance = seeded(seed);
  /** When the link has carried all that was put on it, and when the last of that arrives. */
  let free = 0;
  let last = 0;
  return ({ length }) => {
    const now = performance.now();
    const begins = Math.max(now, free);
    if (begins - now > link.queueMs) return [];
    free = begins + ((length + HEADERS) * 8000) / link.bitsPerSecond;
    // packets keep their order
    last = Math.max(free + link.delayMs * (1 + chance()), last);
    return [last - now];
  };
}
