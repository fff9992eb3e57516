import { parsed } from '../../config/blocks.ts';
import type { Problem } from '../../config/read.ts';
import { isStreamName } from '../../core/names.ts';

/** Result of checking a definition; `problems` has at least one entry, each with the path of its element. */
export type Checked<T> =
  | { readonly ok: true; readonly value: T; readonly warnings: readonly Problem[] }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Form of a channel's stream name. */
export function streamName() {
  return parsed('a name of a stream (without / : ? #, of at most 255 bytes)', (given) =>
    isStreamName(given) ? given : undefined,
  );
}
