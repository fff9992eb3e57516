import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { isClosed } from '../../../access/http-request.ts';
import type { WaitingOfOne } from '../../../access/waiting-of-one.ts';
import { kilnError } from '../../../errors.ts';
import type { Hold } from '../answer/answer.ts';

/** Requests of one connection that are held at once: players, and caches in front of them, send one after the other. */
const MAX_HELD = 4;
const heldOn = new WeakMap<Socket, number>();

/** Holds one request, until its client leaves or too many of its connection are held. */
export function holdOn(reply: FastifyReply): Hold {
  return (wait, most = MAX_HELD) => {
    const {
      raw,
      request: {
        raw: { socket },
      },
    } = reply;
    const held = heldOn.get(socket) ?? 0;
    if (held >= most) throw kilnError('tooManyWaiting');
    const waiting = wait((cancel) => (isClosed(raw) ? cancel() : raw.once('close', cancel)));
    heldOn.set(socket, held + 1);
    return waiting.finally(() => heldOn.set(socket, (heldOn.get(socket) ?? 1) - 1));
  };
}

/**
 * The same for a viewer that has no session yet: no more of its address are held than may wait for streams that are starting.
 * @param address its own, as reported by trusted proxies
 */
export function holdNewOn(reply: FastifyReply, waiting: WaitingOfOne, address: string): Hold {
  const hold = holdOn(reply);
  return async (wait, most) => {
    const leave = waiting.enter(address);
    try {
      return await hold(wait, most);
    } finally {
      leave();
    }
  };
}

/** Holds requests of those who ask on behalf of many, for as long as they say. @param timeoutMs of each */
export function holdFor(timeoutMs: number): Hold {
  return (wait) => {
    let timer: NodeJS.Timeout | undefined;
    return wait((cancel) => (timer = setTimeout(cancel, timeoutMs))).finally(() => clearTimeout(timer));
  };
}
