import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';
import { kilnError } from '../../errors.ts';
import type { Hold } from './answer.ts';

/** Requests of one connection that are held at once: players, and caches in front of them, send one after the other. */
const MAX_HELD = 4;
const heldOn = new WeakMap<Socket, number>();

/** Holds one request, until its client leaves or too many of its connection are held. */
export function holdOn(reply: FastifyReply): Hold {
  return (wait, most = MAX_HELD) => {
    const { socket } = reply.request.raw;
    const held = heldOn.get(socket) ?? 0;
    if (held >= most) throw kilnError('tooManyWaiting');
    const waiting = wait((cancel) => reply.raw.once('close', cancel));
    heldOn.set(socket, held + 1);
    return waiting.finally(() => heldOn.set(socket, (heldOn.get(socket) ?? 1) - 1));
  };
}

/** For those who ask on behalf of many. */
export const holdAny: Hold = (wait) => wait(() => {});
