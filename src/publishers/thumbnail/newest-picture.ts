import type { Application } from '../../core/application.ts';
import type { OutputStream } from '../../core/stream.ts';
import type { ImageCodec } from '../../core/track.ts';
import { kilnError } from '../../errors.ts';
import type { Pictures } from './pictures.ts';

const FORMATS = new Map<string, readonly [codec: ImageCodec, type: string]>([
  ['jpg', ['JPEG', 'image/jpeg']],
  ['jpeg', ['JPEG', 'image/jpeg']],
  ['png', ['PNG', 'image/png']],
  ['webp', ['WEBP', 'image/webp']],
  ['avif', ['AVIF', 'image/avif']],
]);

/** The pictures that a publisher keeps, by output stream. */
export type PicturesOf = ReadonlyMap<OutputStream, Pictures>;

/** What a file extension names: codec and MIME type. @throws thumbnailExtension */
export function formatOf(extension: string): readonly [codec: ImageCodec, type: string] {
  const format = FORMATS.get(extension);
  if (format === undefined) throw kilnError('thumbnailExtension');
  return format;
}

export interface FoundPicture {
  readonly output: OutputStream;
  /** MIME type. */
  readonly type: string;
  readonly picture: Buffer;
}

/**
 * The newest picture of an output stream of this node, in the format that a file extension names.
 * @throws thumbnailStreamNotFound, thumbnailNotStarted, thumbnailExtension, thumbnailMissing
 */
export function newestPicture(
  all: PicturesOf,
  application: Application,
  stream: string,
  extension: string,
): FoundPicture {
  const output = application.outputs.get(stream);
  if (output === undefined) throw kilnError('thumbnailStreamNotFound');
  const pictures = all.get(output);
  if (pictures === undefined) throw kilnError('thumbnailNotStarted');
  const [codec, type] = formatOf(extension);
  if (output.resting) output.emit('wanted');
  const picture = pictures.newest(codec);
  if (picture === undefined) throw kilnError('thumbnailMissing');
  return { output, type, picture };
}
