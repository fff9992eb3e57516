import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import type { Source } from '../../../src/core/source.ts';
import { jsonLogger } from '../../../src/log/log.ts';
import { textLine } from '../../../src/log/text.ts';
import { logStreams } from '../../../src/server/stream-log.ts';
import { addVhost, AUDIO, VIDEO } from '../../support/server/live.ts';

const RTMP: Source = {
  type: 'Rtmp',
  kind: 'rtmp',
  connection: () => ({ transport: 'TCP', protocol: 'TCP', remoteAddress: '203.0.113.9', remotePort: 5000 }),
};

const PLAIN = { replace: false, maxConnections: 0 };

function rig() {
  const registry = new Registry();
  addVhost(registry);
  const lines: string[] = [];
  logStreams(registry, jsonLogger('debug', { write: (line: string) => void lines.push(line) }));
  const application = registry.vhosts.get('default')?.applications.get('app');
  if (application === undefined) throw new Error('no application');
  const fields = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const text = () => lines.map((line) => textLine(line, false).slice('00:00:00 '.length, -1));
  return { application, fields, text };
}

test('a stream is logged when its tracks are known, and when it ends', (t) => {
  const { application, fields, text } = rig();
  const input = application.publish('mystream', RTMP, PLAIN);
  t.deepEqual(text(), []);
  input.setTracks([VIDEO, AUDIO]);
  input.setTracks([VIDEO]);
  input.close('the publisher left');
  t.deepEqual(text(), [
    'INF rtmp app/mystream published 1280x720 H264 AAC from 203.0.113.9',
    'INF rtmp app/mystream ended after 0 s: the publisher left',
  ]);
  t.like(fields()[0], { event: 'stream.published', stream: '#default#app/mystream', remote: '203.0.113.9' });
  t.like(fields()[1], { event: 'stream.ended', seconds: 0, reason: 'the publisher left' });
});

test('a pulled stream is logged with where it came from, without secrets', (t) => {
  const { application, text } = rig();
  const url = 'rtsp://user:secret@camera.example/a?token=x';
  application.publish('cam', { type: 'RtspPull', kind: 'rtsppull', isPulled: true, url }, PLAIN).setTracks([VIDEO]);
  t.deepEqual(text(), ['INF rtsppull app/cam pulled 1280x720 H264 url=rtsp://camera.example/a']);
});

test('viewers are logged as they come and go', (t) => {
  const { application, fields } = rig();
  const input = application.publish('live', RTMP, PLAIN);
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'live');
  application.announce(output);
  const session = {
    id: 'one',
    kind: 'webrtc',
    createdTime: Date.now(),
    out: output.counters.in,
    kick: () => {},
  } as const;
  output.addSession(session)();
  output.addSession({ ...session, id: 'two' });
  output.close('over');
  t.deepEqual(
    fields()
      .slice(1)
      .map(({ event, session: id, level }) => [level, event, id]),
    [
      ['debug', 'viewer.joined', 'one'],
      ['debug', 'viewer.left', 'one'],
      ['debug', 'viewer.joined', 'two'],
      ['debug', 'viewer.left', 'two'],
    ],
  );
});
