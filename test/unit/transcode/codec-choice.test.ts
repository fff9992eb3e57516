import test from 'ava';
import type { Logger } from '../../../src/log/log.ts';
import { chooseCodecs } from '../../../src/transcode/codec-choice.ts';
import { videoTrack } from '../../support/media/packets.ts';
import type { VideoEncoding } from '../../../src/transcode/encoding.ts';

const ENCODING = { type: 'video', codec: 'H264' } as VideoEncoding;

/** Codecs chosen for a source, and the warnings logged about it. */
function chosenFor(transfer: number, filters: readonly string[]) {
  const capabilities = {
    path: 'ffmpeg',
    encoders: new Set(['libx264']),
    decoders: new Set(['h264']),
    filters: new Set(filters),
  };
  const warnings: string[] = [];
  const log = { warn: (_: unknown, text: string) => warnings.push(text) } as unknown as Logger;
  const from = videoTrack({ colour: { primaries: 9, transfer, matrix: 9, fullRange: false } });
  const codecs = chooseCodecs({ from, encoding: ENCODING }, { capabilities, devices: [] }, log);
  return { mapsTones: typeof codecs === 'string' ? codecs : codecs.mapsTones, warnings };
}

test('HDR that cannot be mapped to SDR is encoded as it is, with a warning', (t) => {
  t.deepEqual(chosenFor(16, ['scale', 'zscale', 'tonemap']), { mapsTones: true, warnings: [] });
  const { mapsTones, warnings } = chosenFor(18, ['scale', 'tonemap']);
  t.false(mapsTones);
  t.regex(warnings.join(), /no filters \(zscale, tonemap\)/);
  t.deepEqual(chosenFor(1, ['scale']).warnings, []);
});
