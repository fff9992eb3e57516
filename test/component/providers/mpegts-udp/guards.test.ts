import test from 'ava';
import type { Guard } from '../../../../src/access/guard.ts';
import { askedByHand, denied, notedSessions, WEBHOOK_SESSION } from '../../../support/access/access.ts';
import { startMpegts, UdpSender } from '../../../support/mpegts/mpegts-server.ts';
import { until } from '../../../support/time/until.ts';

test('a server that closes before the answer ends the question, and what is opened later is closed', async (t) => {
  const { guard, questions } = askedByHand();
  const ends: string[] = [];
  const access = { guards: [guard], webhookSessions: notedSessions(ends) };
  const { port, server, taken } = await startMpegts(t, { access });
  const sender = await UdpSender.open(t, port);
  await sender.send(3);
  const question = await until('the question', () => questions[0]);
  await sender.send(30);
  t.is(questions.length, 1, 'what comes meanwhile asks nobody');
  await server.close();
  t.true(question.signal?.aborted);
  question.admit();
  await until('what it opened is closed', () => ends.length === 1);
  t.deepEqual(taken, []);
});

test('MPEG-TS over UDP is held until guards answer, and a sender whose time is over is ignored', async (t) => {
  const { guard, questions } = askedByHand();
  const ends: string[] = [];
  const access = { guards: [guard], webhookSessions: notedSessions(ends) };
  const { port, taken } = await startMpegts(t, { access });
  const sender = await UdpSender.open(t, port);
  await sender.send(30);
  (await until('the question', () => questions[0])).admit({ until: Date.now() + 1000 });
  await until('its stream, of what was held', () => taken[0] !== undefined);
  await until('its time is over', async () => {
    await sender.send(1);
    return ends.length > 0;
  });
  t.deepEqual(ends, ['its allowed time is over']);
  await sender.send(100);
  // another sender is heard: all that came before it was, too
  await (await UdpSender.open(t, port)).send(3);
  await until('the question about another', () => questions.length > 1);
  t.is(questions.length, 2, 'it is not asked about again');
});

test('a sender is refused by a guard, or sent to another stream', async (t) => {
  let answer: Guard = () => {
    throw denied();
  };
  const { port, taken, lines } = await startMpegts(t, { access: { guards: [(...asked) => answer(...asked)] } });
  const sender = await UdpSender.open(t, port);
  await sender.send(3);
  await until('the refusal', () => lines.some((line) => line.includes('MPEG-TS publisher refused')));
  t.deepEqual(taken, []);
  answer = () => async () => ({ target: { stream: 'moved' }, session: WEBHOOK_SESSION });
  await until('its stream', async () => {
    await sender.send(1);
    return taken[0];
  });
  t.is(taken[0]?.input.name, 'moved');
});
