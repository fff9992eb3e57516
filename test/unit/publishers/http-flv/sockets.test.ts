import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import { accessDenied, Denial } from '../../../../src/access/denial.ts';
import { openFlv, type FlvSetup } from '../../../support/flv/http-server.ts';
import { readFlv } from '../../../support/flv/tags.ts';
import { audioTrack, packetAt, videoTrack } from '../../../support/rtmp/played-tracks.ts';
import { until } from '../../../support/time/until.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();

async function setUp(t: ExecutionContext, setup: FlvSetup = {}) {
  const server = await openFlv(t, setup);
  const open = (path: string) => {
    const socket = new WebSocket(`ws://${server.host}:${server.port}${path}`);
    t.teardown(() => socket.terminate());
    const pieces: Buffer[] = [];
    socket.on('message', (data: Buffer) => pieces.push(data)).on('error', () => {});
    return { socket, flv: () => readFlv(Buffer.concat(pieces)), pieces };
  };
  const refusal = async (path: string): Promise<IncomingMessage> => {
    const [, response] = (await once(open(path).socket, 'unexpected-response')) as [never, IncomingMessage];
    return response;
  };
  const refused = async (path: string): Promise<number | undefined> => (await refusal(path)).statusCode;
  return { ...server, open, refused, refusal };
}

test('a player over WebSocket gets FLV in binary messages, and leaves', async (t) => {
  const { goLive, open } = await setUp(t);
  const { output, write } = goLive([VIDEO, AUDIO]);
  write(packetAt(VIDEO, 0), packetAt(AUDIO, 0), packetAt(VIDEO, 1, false, 70_000));
  const { socket, flv } = open('/app/talk.flv?session=me');
  await until('the cached media', () => flv().tags.length === 6);
  t.deepEqual(
    flv().tags.map(({ type }) => type),
    [18, 9, 8, 9, 8, 9],
  );
  t.is(output.counters.publishers.flv, 1);
  t.truthy(output.input.session('me'));
  socket.close();
  await until('it is not counted', () => output.counters.publishers.flv === 0);
});

test('MPEG-TS is played over WebSocket', async (t) => {
  const { goLive, open } = await setUp(t);
  const { write } = goLive([AUDIO]);
  const { pieces, socket } = open('/app/talk.ts');
  await once(socket, 'open');
  for (let frame = 0; frame < 40; frame++) write(packetAt(AUDIO, frame));
  await until('media', () => pieces.length > 1);
  for (const piece of pieces) t.is(piece.length % 188, 0);
});

test('the end of a stream, and of a session by the API, closes its WebSockets', async (t) => {
  const { goLive, open, refused } = await setUp(t);
  const { output, input } = goLive([VIDEO]);
  const [one, other] = [open('/app/talk.flv?session=one'), open('/app/talk.flv?session=other')];
  await until('both play', () => output.sessions.size === 2);
  const kicked = once(one.socket, 'close');
  input.session('one')?.kick();
  t.is((await kicked)[0], 1000);
  t.is(await refused('/app/talk.flv?session=one'), 403);
  const ended = once(other.socket, 'close');
  input.close('it was enough');
  t.is((await ended)[0], 1000);
  t.is(output.sessions.size, 0);
});

test('a WebSocket for an unknown stream, or one without media, is refused before its handshake', async (t) => {
  const { goLive, refused } = await setUp(t);
  goLive([VIDEO]);
  goLive([VIDEO], 'own.flv');
  goLive([VIDEO], 'talk', 'closed');
  for (const path of [
    '/app/none.flv',
    '/app/talk',
    '/app/own.flv',
    '/closed/talk.flv',
    '/app/talk.flv?direction=send',
    '/',
  ])
    t.is(await refused(path), 404, path);
});

test('a player over WebSocket without a token is asked for one', async (t) => {
  const wantToken = (): never => {
    throw accessDenied(new Denial('tokenExpired', 'the token has expired'));
  };
  const { goLive, refusal } = await setUp(t, { access: { guards: [wantToken] } });
  goLive([VIDEO]);
  const { statusCode, headers } = await refusal('/app/talk.flv');
  t.deepEqual([statusCode, headers['www-authenticate']], [401, 'Bearer realm="Kiln", error="invalid_token"']);
});

test('an upgrade that is no handshake of a WebSocket leaves nothing behind', async (t) => {
  const { goLive, host, port } = await setUp(t);
  const { output } = goLive([VIDEO]);
  const socket = connect({ host, port });
  t.teardown(() => socket.destroy());
  socket.write('GET /app/talk.flv HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  const [data] = (await once(socket, 'data')) as [Buffer];
  t.regex(data.toString(), /^HTTP\/1\.1 400/);
  t.is(output.sessions.size, 0);
});
