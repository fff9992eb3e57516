import test from 'ava';
import type { Logger } from '../../../src/log/log.ts';
import { findMeans } from '../../../src/transcode/means.ts';
import { videoTrack } from '../../support/media/packets.ts';
import type { VideoEncoding } from '../../../src/transcode/encoding.ts';

const ENCODING = { type: 'video', codec: 'H264' } as VideoEncoding;

/** What is found for a source, and what is logged of it. */
function meansOf(transfer: number, filters: readonly string[]) {
  const capabilities = {
    path: 'ffmpeg',
    encoders: new Set(['libx264']),
    decoders: new Set(['h264']),
    filters: new Set(filters),
  };
  const warnings: string[] = [];
  const log = { warn: (_: unknown, text: string) => warnings.push(text) } as unknown as Logger;
  const from = videoTrack({ colour: { primaries: 9, transfer, matrix: 9, fullRange: false } });
  const means = findMeans({ from, encoding: ENCODING }, { capabilities, devices: [] }, log);
  return { mapsTones: typeof means === 'string' ? means : means.mapsTones, warnings };
}

test('HDR that cannot be mapped to SDR is encoded as it is, and told of', (t) => {
  t.deepEqual(meansOf(16, ['scale', 'zscale', 'tonemap']), { mapsTones: true, warnings: [] });
  const { mapsTones, warnings } = meansOf(18, ['scale', 'tonemap']);
  t.false(mapsTones);
  t.regex(warnings.join(), /no filters \(zscale, tonemap\)/);
  t.deepEqual(meansOf(1, ['scale']).warnings, []);
});
