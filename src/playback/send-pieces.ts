import type { ServerResponse } from 'node:http';
import { kilnError } from '../errors.ts';

/** Time without progress after which a client counts as gone, in milliseconds. */
const STALL_MS = 60_000;

/**
 * Sends the body of a response piece by piece, the next one when the client has taken the last: no more than one is held for a slow
 * client. The response ends with it.
 * @param signal aborted when the client has left: no more pieces are asked for
 * @param onSent called with the bytes of each piece
 * @throws what the pieces throw; clientGone
 */
export async function sendPieces(
  response: ServerResponse,
  pieces: AsyncIterable<Buffer>,
  signal: AbortSignal,
  onSent: (bytes: number) => void,
): Promise<void> {
  for await (const piece of pieces) {
    if (signal.aborted) throw kilnError('clientGone');
    if (!response.write(piece)) await drained(response, signal);
    onSent(piece.length);
  }
  response.end();
}

function drained(response: ServerResponse, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (done: () => void): void => {
      clearTimeout(stalled);
      response.off('drain', onDrain);
      signal.removeEventListener('abort', onGone);
      done();
    };
    const onDrain = (): void => settle(resolve);
    const onGone = (): void => settle(() => reject(kilnError('clientGone')));
    const stalled = setTimeout(() => response.destroy(), STALL_MS).unref();
    response.once('drain', onDrain);
    signal.addEventListener('abort', onGone, { once: true });
  });
}
