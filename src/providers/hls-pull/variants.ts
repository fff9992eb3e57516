import type { Variant } from './playlist.ts';
import { PullError } from '../pull/error.ts';

const VIDEO = /^(?:avc[13]|hvc1|hev1|av01|vp09)(?:\.|$)/i;
const AUDIO = /^(?:mp4a|opus|ac-3|ec-3)(?:\.|$)/i;
/** Not taken, but no obstacle. */
const SUBTITLES = /^(?:wvtt|stpp)(?:\.|$)/i;

/**
 * Sorts the variants of a master playlist, the best first: with video, and of the highest bit rate. Those with codecs that cannot
 * be taken are left out.
 * @throws PullError when none is left
 */
export function ranked(variants: readonly Variant[]): Variant[] {
  const able = variants.filter(({ codecs }) => codecs.every(isKnown));
  if (able.length > 0) return able.sort((a, b) => rankOf(b) - rankOf(a) || b.bandwidth - a.bandwidth);
  const unknown = new Set(variants.flatMap(({ codecs }) => codecs.filter((codec) => !isKnown(codec))));
  throw new PullError(
    unknown.size === 0
      ? 'the playlist has no variants'
      : `the variants have codecs that are not supported: ${[...unknown].join(', ')}`,
  );
}

function isKnown(codec: string): boolean {
  return [VIDEO, AUDIO, SUBTITLES].some((known) => known.test(codec));
}

function rankOf({ codecs }: Variant): number {
  return codecs.length === 0 || codecs.some((codec) => VIDEO.test(codec)) ? 1 : 0;
}
