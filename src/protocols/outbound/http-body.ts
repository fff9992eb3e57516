import { within } from '../../lib/within.ts';
import type { OutboundGuard } from './guard.ts';
import type { HttpAnswer } from './http-request.ts';
import { shownUrl } from './shown.ts';

/** Time for all of a body that is wanted whole, once the answer has begun. */
const WHOLE_MS = 15_000;
/** Time without anything of a body. */
const SILENCE_MS = 10_000;

/** Reads a body to its end. @throws the guard's error when it is not sent in time, or has more bytes */
export async function wholeBody(answer: HttpAnswer, maxBytes: number, guard: OutboundGuard): Promise<Buffer> {
  const until = performance.now() + WHOLE_MS;
  const chunks: Buffer[] = [];
  for await (const chunk of httpBody(answer, maxBytes, guard)) {
    chunks.push(chunk);
    if (performance.now() > until) throw guard.error(`${shownUrl(answer.url.href)} was not sent in time`);
  }
  return Buffer.concat(chunks);
}

/**
 * A body as it comes. While none is taken, the server waits.
 * @throws the guard's error when it is not sent to its end, or has more bytes
 */
export async function* httpBody(
  { response, socket, url }: HttpAnswer,
  maxBytes: number,
  guard: OutboundGuard,
): AsyncGenerator<Buffer, void, undefined> {
  const fault = (text: string): Error => guard.error(`${shownUrl(url.href)}${text}`);
  const chunks = response[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let bytes = 0;
  try {
    for (;;) {
      const next = await within(SILENCE_MS, chunks.next()).catch(() => {
        throw fault(': the connection was closed in the middle');
      });
      if (next === undefined) throw fault(': the server stopped sending');
      if (next.done === true) return;
      bytes += next.value.length;
      if (bytes > maxBytes) throw fault(` has more than ${maxBytes} bytes`);
      yield next.value;
    }
  } finally {
    socket.destroy();
  }
}
