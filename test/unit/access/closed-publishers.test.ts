import test from 'ava';
import { publisherConfig } from '../../../src/access/request.ts';
import { Application } from '../../../src/config/elements/application.ts';
import type { ApplicationConfig } from '../../../src/config/model.ts';
import { readConfig } from '../../../src/config/read.ts';

const PROTOCOLS = ['webrtc', 'llhls', 'hlsv3', 'playback', 'thumbnail', 'srt', 'ovt', 'rtmp', 'flv'] as const;

function opened(drm: object): readonly string[] {
  const publishers = {
    webrtc: {},
    llhls: { drm },
    hls: {},
    playback: {},
    thumbnail: {},
    srt: {},
    ovt: {},
    rtmp: {},
    flv: {},
  };
  const reading = readConfig(Application, { name: 'app', type: 'live', publishers });
  if (!reading.ok) throw new Error(JSON.stringify(reading.problems));
  const config = reading.config as ApplicationConfig;
  return PROTOCOLS.filter((protocol) => publisherConfig(config, protocol) !== undefined);
}

test('RefuseClear closes all publishers but LL-HLS, where DRM is on', (t) => {
  t.deepEqual(opened({ enable: true, infoFile: 'drm.xml', refuseClear: true }), ['llhls']);
  t.deepEqual(opened({ enable: true, infoFile: 'drm.xml' }), PROTOCOLS);
  t.deepEqual(opened({ enable: false, refuseClear: true }), PROTOCOLS);
});
