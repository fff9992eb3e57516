import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '../program.ts';
import { monotonic } from '../stamp.ts';

const STAMP = 8;

interface Held {
  readonly answer: ServerResponse;
  readonly bytes: number;
}

const commands = {
  /**
   * Serves `/held/BYTES`, answered at the next tick, and `/now/BYTES`, answered at once. The last eight bytes are when the
   * tick was. @param everyMs between ticks @returns its port
   */
  async open(everyMs: number): Promise<number> {
    let waiting: Held[] = [];
    let bodies = new Map<number, Buffer>();
    let ticked = monotonic();
    const bodyOf = (bytes: number): Buffer => {
      const body = bodies.get(bytes) ?? Buffer.alloc(bytes);
      if (!bodies.has(bytes)) body.writeDoubleBE(ticked, bytes - STAMP);
      bodies.set(bytes, body);
      return body;
    };
    const server = createServer(({ url = '' }, answer) => {
      const [, when, size] = url.split('/');
      const bytes = Number(size);
      if (when === 'held') waiting.push({ answer, bytes });
      else answer.end(bodyOf(bytes));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    setInterval(() => {
      ticked = monotonic();
      bodies = new Map();
      const held = waiting;
      waiting = [];
      for (const { answer, bytes } of held) answer.end(bodyOf(bytes));
    }, everyMs);
    return (server.address() as AddressInfo).port;
  },
};

/** A bare server of node:http that holds requests as LL-HLS does. */
export type HeldCommands = typeof commands;

serve(commands);
