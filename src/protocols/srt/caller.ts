import type { SrtOption } from '../../lib/srt-options.ts';
import { writeAddress } from './address.ts';
import { SrtConnection } from './connection.ts';
import { SrtError } from './error.ts';
import { CONNECTED, EVENT, INVALID, OPTION } from './library.ts';
import { optionBytes } from './option-bytes.ts';
import type { SrtRuntime } from './runtime.ts';

export interface SrtCall {
  /** An IP address. */
  readonly address: string;
  readonly port: number;
  /** At most 512 bytes; empty for none. */
  readonly streamId: string;
  readonly options: readonly SrtOption[];
  /** Ends the call. */
  readonly signal: AbortSignal;
}

const OFF = Buffer.alloc(4);

/**
 * Calls a listener.
 * @throws SrtError when an option is refused, named without its value, and when the listener refuses or does not answer
 */
export function callSrt(
  runtime: SrtRuntime,
  { address, port, streamId, options, signal }: SrtCall,
): Promise<SrtConnection> {
  const { library } = runtime;
  const socket = library.createSocket();
  const set = (option: number, value: Buffer, name: string): void => {
    if (library.setOption(socket, option, value, value.length) === INVALID)
      throw new SrtError(`libsrt refuses ${name}: ${library.lastErrorText()}`);
  };
  return new Promise((resolve, reject) => {
    const onAbort = (): void => fail(new SrtError('the call was ended'));
    const fail = (error: unknown): void => {
      signal.removeEventListener('abort', onAbort);
      runtime.release(socket);
      reject(error as Error);
    };
    const ready = (): void => {
      const state = library.state(socket);
      if (state > CONNECTED) return fail(new SrtError(`the listener refused the call: ${library.rejection(socket)}`));
      if (state < CONNECTED) return;
      signal.removeEventListener('abort', onAbort);
      runtime.unwatch(socket);
      const ends = { peer: { address, port }, local: undefined, streamId, first: 0, guard: undefined };
      resolve(new SrtConnection(runtime, socket, ends));
    };
    try {
      set(OPTION.rcvsyn, OFF, 'SRTO_RCVSYN');
      set(OPTION.sndsyn, OFF, 'SRTO_SNDSYN');
      for (const option of options) set(option.id, optionBytes(option), option.name);
      if (streamId !== '') set(OPTION.streamid, Buffer.from(streamId), 'SRTO_STREAMID');
      runtime.watch(socket, EVENT.out | EVENT.error, { ready, fail });
      const to = writeAddress(address, port);
      if (library.connect(socket, to, to.length) === INVALID)
        throw new SrtError(`SRT cannot call UDP port ${port} of ${address}: ${library.lastErrorText()}`);
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
    } catch (error) {
      fail(error);
    }
  });
}
