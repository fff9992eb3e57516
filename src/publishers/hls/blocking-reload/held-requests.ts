import { isClosed } from '../../../access/http-request.ts';
import type { WaitingOfOne } from '../../../access/waiting-of-one.ts';
import { kilnError } from '../../../errors.ts';
import type { Exchange } from '../answer/exchange.ts';
import type { Hold } from '../answer/played-stream.ts';

/** Requests held at once on one connection: players, and caches between, send one after the other. */
const MAX_HELD = 4;
const heldOn = new WeakMap<object, number>();

/** Holds one request until its client leaves. Rejects it if its connection has too many held. */
export function holdOn({ request: { socket }, response }: Exchange): Hold {
  return (wait, most = MAX_HELD) => {
    const held = heldOn.get(socket) ?? 0;
    if (held >= most) throw kilnError('tooManyWaiting');
    const waiting = wait((cancel) => (isClosed(response) ? cancel() : response.once('close', cancel)));
    heldOn.set(socket, held + 1);
    return waiting.finally(() => heldOn.set(socket, (heldOn.get(socket) ?? 1) - 1));
  };
}

/**
 * Holds a request as `holdOn` does, for a viewer without a session: the number per address is limited too, as for streams that
 * are starting.
 * @param address of the viewer, as reported by trusted proxies
 */
export function holdNewOn(exchange: Exchange, waiting: WaitingOfOne, address: string): Hold {
  const hold = holdOn(exchange);
  return async (wait, most) => {
    const leave = waiting.enter(address);
    try {
      return await hold(wait, most);
    } finally {
      leave();
    }
  };
}

/** Holds a relayed request up to its timeout. */
export function holdFor(timeoutMs: number): Hold {
  return (wait) => {
    let timer: NodeJS.Timeout | undefined;
    return wait((cancel) => (timer = setTimeout(cancel, timeoutMs))).finally(() => clearTimeout(timer));
  };
}
