import test from 'ava';
import { Registry } from '../../../src/core/registry.ts';
import type { OutputStream } from '../../../src/core/output-stream.ts';
import { RTMP, Sink, SRT, VIDEO, vhostConfig, video } from './support.ts';

const ANY = { replace: false, maxConnections: 0 };

function openApplication() {
  const registry = new Registry();
  const config = { name: 'my#vhost', host: { names: ['*'] }, applications: [{ name: 'app', type: 'live' }] };
  const vhost = registry.createVhost(vhostConfig(config), true);
  return { registry, vhost, application: vhost.application('app') };
}

test('a stream is listed and announced when its tracks are known', (t) => {
  const { registry, application } = openApplication();
  const announced: string[] = [];
  registry.on('input', (input, owner) => announced.push(`${owner.internalName}/${input.name}`));
  const input = application.publish('live', RTMP, ANY);
  t.is(application.stream('live'), undefined);
  t.deepEqual([...application.streams()], []);
  input.setTracks([VIDEO]);
  t.is(application.stream('live'), input);
  input.setTracks([{ ...VIDEO }]);
  t.deepEqual(announced, ['#my_vhost#app/live'], 'once');
});

test('a name belongs to one source, also before its tracks are known', (t) => {
  const { application } = openApplication();
  const first = application.publish('live', RTMP, ANY);
  t.throws(() => application.publish('live', RTMP, ANY), { code: 'streamExists' });
  t.false(first.closed);
  first.close('gone');
  t.notThrows(() => application.publish('live', RTMP, ANY));
});

test('a newcomer may take the name over', (t) => {
  const { application } = openApplication();
  const first = application.publish('live', RTMP, ANY);
  first.setTracks([VIDEO]);
  const reasons: string[] = [];
  first.once('close', (reason) => reasons.push(reason));
  const second = application.publish('live', SRT, { replace: true, maxConnections: 0 });
  second.setTracks([VIDEO]);
  t.deepEqual(reasons, ['another publisher took over the name']);
  t.is(application.stream('live'), second);
  first.close('the socket closed at last');
  t.is(application.stream('live'), second, 'the end of the old one does not take the new one along');
  t.deepEqual([application.counters.providers.rtmp, application.counters.providers.srt], [0, 1]);
});

test('sources are limited by kind', (t) => {
  const { application } = openApplication();
  const limited = { replace: true, maxConnections: 2 };
  application.publish('a', RTMP, limited);
  application.publish('b', RTMP, limited);
  t.throws(() => application.publish('c', RTMP, limited), { code: 'tooManyConnections' });
  t.notThrows(() => application.publish('b', RTMP, limited), 'one that is replaced makes room for the newcomer');
  t.notThrows(() => application.publish('d', SRT, limited));
  const taken = application.publish('e', SRT, limited);
  t.throws(() => application.publish('e', RTMP, limited), { code: 'tooManyConnections' });
  t.false(taken.closed, 'a newcomer that is refused ends nobody');
});

test('output names are unique in the application', (t) => {
  const { registry, application } = openApplication();
  const announced: OutputStream[] = [];
  registry.on('output', (output) => announced.push(output));
  const first = application.publish('a', RTMP, ANY);
  const second = application.publish('b', RTMP, ANY);
  const output = application.addOutput(first, 'live');
  t.throws(() => application.addOutput(second, 'live'), { code: 'streamExists' });
  t.is(announced.length, 0);
  application.announce(output);
  t.deepEqual(announced, [output]);
  first.close('gone');
  t.is(application.outputs.size, 0);
  t.is(application.addOutput(second, 'live').input, second);
});

test('a stream that has ended puts nothing out any more', (t) => {
  const { application } = openApplication();
  const input = application.publish('a', RTMP, ANY);
  input.setTracks([VIDEO]);
  input.close('gone');
  t.throws(() => application.addOutput(input, 'a'), { code: 'streamNotFound', message: /#my_vhost#app\/a/ });
  t.is(application.outputs.size, 0);
});

test('a closed application ends its streams and takes no more', (t) => {
  const { vhost, application } = openApplication();
  const input = application.publish('a', RTMP, ANY);
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'a');
  const [inside, outside] = [new Sink(), new Sink()];
  input.read(inside);
  output.read(outside);
  let closes = 0;
  application.on('close', () => closes++);
  application.close('deleted');
  application.close('again');
  t.is(closes, 1);
  t.deepEqual([inside.reasons, outside.reasons], [['deleted'], ['deleted']]);
  t.is(application.outputs.size, 0);
  t.deepEqual([...application.streams()], []);
  t.false(vhost.applications.has('app'));
  t.throws(() => application.publish('b', RTMP, ANY), { code: 'applicationNotFound' });
});

test('counters of a stream roll up and outlive it', (t) => {
  const { registry, vhost, application } = openApplication();
  const input = application.publish('a', RTMP, ANY);
  input.counters.received(1000);
  const output = application.addOutput(input, 'a');
  output.counters.sent(300);
  t.is(input.counters.out.totalBytes, 300, 'an output counts on its input');
  t.is(registry.counters.providers.rtmp, 1);
  input.close('gone');
  const again = application.publish('a', RTMP, ANY);
  t.is(again.counters.in.totalBytes, 0);
  for (const { counters } of [application, vhost, registry]) {
    t.deepEqual([counters.in.totalBytes, counters.out.totalBytes, counters.providers.rtmp], [1000, 300, 1]);
  }
});

test('packets pass from input to output readers by reference', (t) => {
  const { application } = openApplication();
  const input = application.publish('a', RTMP, ANY);
  input.setTracks([VIDEO]);
  const output = application.addOutput(input, 'a');
  output.setTracks([VIDEO]);
  input.read({ packet: (packet) => output.write(packet) });
  const sink = new Sink();
  output.read(sink);
  const packet = video(0, true);
  input.write(packet);
  t.is(sink.packets[0], packet);
});

test('a stream without its publisher takes no name and no place from another', (t) => {
  const { registry, application } = openApplication();
  const limited = { replace: false, maxConnections: 1 };
  const input = application.publish('live', RTMP, { ...limited, hasStandby: true });
  t.is(registry.counters.providers.rtmp, 0, 'its publishers are counted instead');
  t.throws(() => application.check('live', RTMP, limited), { code: 'streamExists' });
  t.throws(() => application.check('other', RTMP, limited), { code: 'tooManyConnections' });
  let told = 0;
  input.on('handsOver', () => told++);
  input.isVacant = true;
  input.isVacant = true;
  t.is(told, 1);
  t.notThrows(() => application.check('live', RTMP, limited));
  t.notThrows(() => application.check('other', RTMP, limited));
});
