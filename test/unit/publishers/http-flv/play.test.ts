import { once } from 'node:events';
import { connect } from 'node:net';
import test from 'ava';
import { accessDenied, Denial } from '../../../../src/access/denial.ts';
import { decodeAmf0 } from '../../../../src/protocols/rtmp/amf0.ts';
import { denied } from '../../../support/access/access.ts';
import { openFlv } from '../../../support/flv/http-server.ts';
import { audioTrack, packetAt, videoTrack } from '../../../support/rtmp/played-tracks.ts';
import { until } from '../../../support/time/until.ts';

const VIDEO = videoTrack();
const AUDIO = audioTrack();
const HEVC = videoTrack({ codec: 'H265' });
const [SOUND, PICTURE, DATA] = [8, 9, 18];
const reject = () => {
  throw denied();
};
const wantToken = () => {
  throw accessDenied(new Denial('tokenMissing', 'there is no token'));
};

test('a player over HTTP gets FLV: header, metadata, configurations and media from the last key frame on', async (t) => {
  const { goLive, play } = await openFlv(t);
  const { output, write } = goLive([VIDEO, AUDIO]);
  write(packetAt(VIDEO, 0), packetAt(AUDIO, 0), packetAt(VIDEO, 1, false));
  const player = await play('/app/talk.flv');
  t.is(player.response.statusCode, 200);
  t.like(player.response.headers, {
    'content-type': 'video/x-flv',
    'cache-control': 'no-cache, no-store',
    'transfer-encoding': 'chunked',
    server: 'Kiln',
  });
  await until('the cached media', () => player.heads(PICTURE).length === 3);
  write(packetAt(VIDEO, 2, false));
  await until('what follows', () => player.heads(PICTURE).length === 4);
  t.is(player.flv.flags, 5);
  t.deepEqual(player.heads(PICTURE), ['1700', '1701', '2701', '2701']);
  t.deepEqual(player.heads(SOUND), ['af00', 'af01']);
  t.deepEqual(
    player.flv.tags.filter(({ type }) => type === PICTURE).map(({ time }) => time),
    [0, 0, 40, 80],
  );
  const [name, metadata] = decodeAmf0(player.flv.tags.find(({ type }) => type === DATA)?.body ?? Buffer.alloc(0));
  t.is(name, 'onMetaData');
  t.like(metadata, { width: 64, height: 36, videocodecid: 7, audiocodecid: 10 });
  t.is(output.sessions.size, 1);
  const [session] = output.sessions.values();
  t.like(session, { kind: 'flv', byPlaylist: false });
  player.leave();
  await until('it is not counted', () => output.sessions.size === 0 && output.counters.publishers.flv === 0);
  t.is(output.readers, 1, 'the cache alone still reads');
});

test('gop=0: a player over HTTP waits for the next key frame, and the header names the tracks of then', async (t) => {
  const { goLive, play } = await openFlv(t);
  const { write, output } = goLive([VIDEO, AUDIO]);
  write(packetAt(VIDEO, 0));
  const player = await play('/app/talk.flv?gop=0');
  t.is(output.sessions.size, 1);
  t.is(player.bytes.length, 0);
  write(packetAt(VIDEO, 1, false), packetAt(AUDIO, 1), packetAt(VIDEO, 2));
  await until('the key frame', () => player.heads(PICTURE).length === 2);
  t.deepEqual(player.heads(PICTURE), ['1700', '1701']);
  t.deepEqual(player.heads(SOUND), ['af00'], 'the configuration alone');
});

test('players over HTTP get whole transport packets with tables first', async (t) => {
  const { goLive, play } = await openFlv(t);
  const { write } = goLive([AUDIO]);
  const player = await play('/app/talk.ts');
  t.is(player.response.headers['content-type'], 'video/mp2t');
  for (let frame = 0; frame < 40; frame++) write(packetAt(AUDIO, frame));
  await until('media', () => player.bytes.length > 188 * 4);
  const { bytes } = player;
  t.is(bytes.length % 188, 0);
  for (let at = 0; at < bytes.length; at += 188) t.is(bytes[at], 0x47);
  t.is(bytes.readUInt16BE(1) & 0x1fff, 0, 'the program association table');
});

test('the end of a stream ends its responses, and the connection goes on', async (t) => {
  const { goLive, play, host, port } = await openFlv(t);
  const { input, write } = goLive([VIDEO]);
  write(packetAt(VIDEO, 0));
  const player = await play('/app/talk.flv');
  const socket = connect({ host, port });
  t.teardown(() => socket.destroy());
  let got = '';
  socket.on('data', (data: Buffer) => (got += data.toString('latin1')));
  socket.write('GET /app/talk.ts HTTP/1.1\r\nHost: h\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n');
  await until('the second plays', () => got.includes('video/mp2t'));
  input.close('it was enough');
  await until('the first ends', () => player.ended === 'end');
  await until('the request after it is answered', () => got.split('HTTP/1.1 ').length === 3);
  t.regex(got, /\r\n0\r\n\r\nHTTP\/1\.1 \d/);
});

test('a request that waits for another on its connection is played after it', async (t) => {
  const { goLive, host, port } = await openFlv(t);
  const [first, second] = [goLive([VIDEO], 'first'), goLive([VIDEO], 'second')];
  first.write(packetAt(VIDEO, 0));
  second.write(packetAt(VIDEO, 0));
  const socket = connect({ host, port });
  t.teardown(() => socket.destroy());
  let got = Buffer.alloc(0);
  socket.on('data', (data: Buffer) => (got = Buffer.concat([got, data])));
  const head = (name: string) => `GET /app/${name}.flv HTTP/1.1\r\nHost: h\r\n\r\n`;
  socket.write(head('first') + head('second'));
  await until('both play', () => second.output.sessions.size === 1 && got.includes('FLV'));
  first.input.close('it was enough');
  await until('the second is sent', () => got.toString('latin1').split('FLV').length === 3);
  second.write(packetAt(VIDEO, 1, false));
  second.input.close('it was enough');
  await until('its end', () => got.toString('latin1').endsWith('0\r\n\r\n'));
  t.is(got.toString('latin1').split(/transfer-encoding: chunked/i).length, 3);
});

test('HTTP/1.0 gets media without chunks, until the connection is closed', async (t) => {
  const { goLive, host, port } = await openFlv(t);
  const { input, write } = goLive([VIDEO]);
  write(packetAt(VIDEO, 0));
  const socket = connect({ host, port });
  t.teardown(() => socket.destroy());
  const pieces: Buffer[] = [];
  socket.on('data', (data: Buffer) => pieces.push(data));
  socket.write('GET /app/talk.flv HTTP/1.0\r\n\r\n');
  await until('media', () => Buffer.concat(pieces).includes('FLV'));
  input.close('it was enough');
  await once(socket, 'close');
  const [head = '', body = ''] = Buffer.concat(pieces).toString('latin1').split('\r\n\r\n', 2);
  t.false(/transfer-encoding/i.test(head));
  t.true(body.startsWith('FLV\x01\x01'));
});

test('HEAD of media is answered, and opens no session', async (t) => {
  const { goLive, call } = await openFlv(t);
  const { output } = goLive([VIDEO]);
  for (const [path, type] of [
    ['/app/talk.flv?session=me', 'video/x-flv'],
    ['/app/talk.ts', 'video/mp2t'],
  ] as const) {
    const { status, headers, body } = await call('HEAD', path);
    t.is(status, 200);
    t.like(headers, { 'content-type': type, 'cache-control': 'no-cache, no-store' });
    t.is(body, '');
  }
  t.is(output.sessions.size, 0);
  t.is(output.counters.publishersSoFar.flv, 0);
  t.is((await call('HEAD', '/app/none.flv')).status, 404);
});

test('streams, playlists and applications that are not there are not found', async (t) => {
  const { goLive, call } = await openFlv(t);
  goLive([VIDEO]);
  goLive([VIDEO], 'talk', 'closed');
  for (const path of ['/app/none.flv', '/app/none.ts', '/none/talk.flv', '/app/talk/none.flv', '/closed/talk/x.flv'])
    t.is((await call('GET', path)).status, 404, path);
  t.is((await call('POST', '/app/talk.flv')).status, 404);
});

test('a stream of that very name, and applications without the publisher, have their pages', async (t) => {
  const { goLive, call, play } = await openFlv(t);
  const { write } = goLive([VIDEO]);
  write(packetAt(VIDEO, 0));
  const page = async (path: string) => {
    const { status, headers } = await call('GET', path);
    return [status, headers['content-type']];
  };
  t.deepEqual(await page('/closed/talk.flv'), [200, 'text/html; charset=utf-8']);
  const player = await play('/app/talk.flv');
  t.is(player.response.headers['content-type'], 'video/x-flv');
  goLive([VIDEO], 'talk.flv');
  t.deepEqual(await page('/app/talk.flv'), [200, 'text/html; charset=utf-8']);
  t.is((await play('/app/talk.flv.flv')).response.statusCode, 200, 'it is played by its whole name');
});

test('rejected viewers over HTTP get the status, and 401 without a reason', async (t) => {
  const { goLive, call } = await openFlv(t, { access: { guards: [reject] } });
  goLive([VIDEO]);
  const { status, body, headers } = await call('GET', '/app/talk.flv');
  t.is(status, 401);
  t.is(body, '');
  t.is(headers['cache-control'], 'no-cache, no-store');
  t.is(headers['www-authenticate'], undefined);
  t.is((await call('HEAD', '/app/talk.ts')).status, 401);
});

test('viewers over HTTP without a token are asked for one', async (t) => {
  const { goLive, call } = await openFlv(t, { access: { guards: [wantToken] } });
  goLive([VIDEO]);
  const { status, body, headers } = await call('GET', '/app/talk.flv');
  t.deepEqual([status, body, headers['www-authenticate']], [401, '', 'Bearer realm="Kiln"']);
});

test('one viewer over HTTP more than MaxConnection is rejected', async (t) => {
  const { goLive, call, play } = await openFlv(t, { flv: { maxConnection: 1 } });
  const { output } = goLive([VIDEO]);
  const first = await play('/app/talk.flv');
  t.is((await call('GET', '/app/talk.ts')).status, 503);
  first.leave();
  await until('there is room', () => output.sessions.size === 0);
  t.is((await play('/app/talk.ts')).response.statusCode, 200);
});

test('a viewer over HTTP that the API ends may not come back', async (t) => {
  const { goLive, play, call } = await openFlv(t);
  const { output } = goLive([VIDEO]);
  const player = await play('/app/talk.flv?session=me');
  t.is((await call('GET', '/app/talk.flv?session=me')).status, 409);
  output.input.session('me')?.kick();
  await until('it ends', () => player.ended === 'end');
  t.is(output.sessions.size, 0);
  t.is((await call('GET', '/app/talk.flv?session=me')).status, 403);
});

test('codecs that FLV has by Enhanced RTMP are sent where the stream has no others', async (t) => {
  const { goLive, play } = await openFlv(t);
  const { write } = goLive([HEVC]);
  write(packetAt(HEVC, 0));
  const player = await play('/app/talk.flv');
  await until('media', () => player.heads(PICTURE).length === 2);
  const [config] = player.flv.tags.filter(({ type }) => type === PICTURE);
  t.is(config?.body.toString('latin1', 1, 5), 'hvc1');
});

test('a stream of codecs that the container has not is refused, with their names', async (t) => {
  const { goLive, call } = await openFlv(t, { extended: false });
  goLive([HEVC]);
  goLive([videoTrack({ codec: 'VP8' })], 'vp8');
  const { status, body } = await call('GET', '/app/talk.flv');
  t.is(status, 406);
  t.regex(body, /H265/);
  t.regex((await call('GET', '/app/vp8.ts')).body, /VP8/);
});

test('pages of other origins may play as CrossDomains say', async (t) => {
  const crossDomains = { url: ['https://site.example'] };
  const { goLive, play, call } = await openFlv(t, { flv: { crossDomains } });
  goLive([VIDEO]);
  const headers = { origin: 'https://site.example' };
  const allowed = { 'access-control-allow-origin': 'https://site.example' };
  t.like((await play('/app/talk.flv', { headers })).response.headers, allowed);
  t.like((await call('GET', '/app/none.flv', headers)).headers, allowed, 'an error too');
  for (const path of ['/app/talk.flv', '/app/talk/p.flv']) {
    const preflight = await call('OPTIONS', path, { ...headers, 'access-control-request-method': 'GET' });
    t.is(preflight.status, 200);
    t.like(preflight.headers, allowed);
    t.regex(preflight.headers['access-control-allow-methods'] ?? '', /GET/);
  }
  const other = await call('OPTIONS', '/app/talk.flv', { origin: 'https://other.example' });
  t.is(other.headers['access-control-allow-origin'], undefined);
});

test('a viewer over HTTP that closes its side, or resets, is not counted any more', async (t) => {
  const { goLive, host, port } = await openFlv(t);
  const { output, write } = goLive([VIDEO]);
  write(packetAt(VIDEO, 0));
  const open = async () => {
    const socket = connect({ host, port, allowHalfOpen: true }).on('error', () => {});
    t.teardown(() => socket.destroy());
    socket.write('GET /app/talk.flv HTTP/1.1\r\nHost: h\r\n\r\n');
    await once(socket.resume(), 'data');
    return socket;
  };
  const [halfClosed, reset] = [await open(), await open()];
  t.is(output.sessions.size, 2);
  halfClosed.end();
  reset.resetAndDestroy();
  let frame = 1;
  await until('both are gone', () => {
    write(packetAt(VIDEO, frame++, false));
    return output.sessions.size === 0;
  });
  t.is(output.counters.publishers.flv, 0);
});

test('a slow viewer over HTTP goes on at a later key frame, and holds bounded memory', async (t) => {
  const { goLive, play } = await openFlv(t);
  const { output, write } = goLive([VIDEO]);
  const quick = await play('/app/talk.flv');
  const slow = await play('/app/talk.flv');
  slow.response.pause();
  const bytes = 256 * 1024;
  for (let frame = 0; frame < 120; frame++) {
    write(packetAt(VIDEO, frame, frame % 10 === 0, bytes));
    await until('the quick one has it', () => quick.received > (frame + 1) * bytes);
  }
  const waiting = [...output.queues].map(({ size }) => size);
  t.true(Math.max(...waiting) <= 40, `${waiting}`);
  slow.response.resume();
  write(packetAt(VIDEO, 120, true, 8));
  await until('the slow one goes on', () => slow.flv.tags.at(-1)?.time === 4800);
  const pictures = slow.heads(PICTURE);
  t.true(pictures.length < 121, `${pictures.length}`);
  const times = slow.flv.tags.filter(({ type }) => type === PICTURE).map(({ time }) => time);
  const gap = times.findIndex((time, i) => i > 1 && time - (times[i - 1] ?? 0) > 40);
  t.is(pictures[gap], '1701', 'behind the gap is a key frame');
});
