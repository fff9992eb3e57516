import type { ServerResponse } from 'node:http';
import { kilnError } from '../errors.ts';
import { pieceMemory } from './piece-memory.ts';

/** Time without progress after which a client counts as gone, in milliseconds. */
const STALL_MS = 60_000;

/**
 * Sends the body of a response piece by piece, the next one when the system has taken the last: no more than one is held for a slow
 * client. The response ends with it. The memory of pieces is given back when they are sent.
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
    await written(response, piece, signal);
    onSent(piece.length);
    pieceMemory.give(piece);
  }
  response.end();
}

/** Resolves when the system has all of a piece. @throws clientGone */
function written(response: ServerResponse, piece: Buffer, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (isSent: boolean): void => {
      clearTimeout(stalled);
      signal.removeEventListener('abort', onGone);
      if (isSent) resolve();
      else reject(kilnError('clientGone'));
    };
    const onGone = (): void => settle(false);
    const stalled = setTimeout(() => response.destroy(), STALL_MS).unref();
    signal.addEventListener('abort', onGone, { once: true });
    response.write(piece, (error) => settle(error === undefined || error === null));
  });
}
