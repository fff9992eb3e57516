import type { OutputStream } from '../../../core/output-stream.ts';
import type { HlsForm } from '../package/hls-form.ts';
import type { StreamFolder } from '../rewind/stream-folder.ts';
import { readSavedState, type SavedPlaylistState } from './saved-state.ts';

/**
 * Reads the state from which a stream continues: what the stream before has kept, or else what is on the disk.
 * @param folder of the past; undefined where players do not rewind
 * @param onFault called with why the folder cannot be read
 */
export function savedBefore(
  form: HlsForm,
  output: OutputStream,
  folder: StreamFolder | undefined,
  onFault: (reason: string) => void,
): SavedPlaylistState | undefined {
  const kept = keptState(form, output);
  if (kept !== undefined || folder === undefined) return kept;
  try {
    const stored = readSavedState(folder.readState());
    // written with each segment, however long ago that was
    return stored && { ...stored, at: Date.now() };
  } catch (error) {
    onFault((error as Error).message);
    return undefined;
  }
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
