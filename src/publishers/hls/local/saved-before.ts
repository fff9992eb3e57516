import type { OutputStream } from '../../../core/output-stream.ts';
import { DiskHangs } from '../../../core/disk-calls.ts';
import { unlessAborted } from '../../../lib/unless-aborted.ts';
import { Watchdog } from '../../../lib/watchdog.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { StreamFolder } from '../rewind/stream-folder.ts';
import { readSavedState, type SavedPlaylistState } from './saved-state.ts';

/** Time for which a stream waits for its state, other calls of the disk included. */
const STATE_MS = 5000;

/**
 * Reads the state from which a stream continues, where the stream before has kept none.
 * @param folder of the past
 * @param signal ends the wait early
 * @throws as `StreamFolder.readState`; DiskHangs as well where the disk is too busy, or the signal aborts
 */
export async function storedState(
  folder: Pick<StreamFolder, 'readState'>,
  signal: AbortSignal,
): Promise<SavedPlaylistState | undefined> {
  const late = new AbortController();
  const watchdog = new Watchdog(STATE_MS, () => late.abort());
  const reading = folder.readState().then((value) => ({ value }));
  const read = await unlessAborted(reading, AbortSignal.any([signal, late.signal])).finally(() => watchdog.close());
  if (read === undefined) throw new DiskHangs();
  const stored = readSavedState(read.value);
  // written with each segment, however long ago that was
  return stored && { ...stored, at: Date.now() };
}

/** State that the stream before, or an earlier output of this stream, has kept. */
export function keptState(
  form: HlsForm,
  { name, input: { continuity } }: OutputStream,
): SavedPlaylistState | undefined {
  const key = keptKey(form, name);
  return readSavedState(continuity.kept.get(key) ?? continuity.inherited(key));
}

/** Key under which the state of an output stream is kept. */
export function keptKey({ kind }: HlsForm, output: string): string {
  return `${kind} ${output}`;
}
