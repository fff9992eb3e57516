import test from 'ava';
import { NodeLimits } from '../../../src/management/node-limits.ts';

const NONE = { load: 0, bitrate: 0, viewers: 0 };
const IDLE = { load: 0, bitrate: 0, viewers: 0 };

test('a node without limits is never full', (t) => {
  const limits = new NodeLimits(NONE);
  for (let i = 0; i < 100; i++) limits.add({ load: 1, bitrate: 1e12, viewers: 1e6 });
  t.is(limits.full, undefined);
  t.is(limits.room, 1);
});

test('a busy second fills no node, a busy while does, and it has room again clearly below the limit', (t) => {
  const limits = new NodeLimits({ ...NONE, load: 90 });
  limits.add({ ...IDLE, load: 1 });
  t.is(limits.full, undefined);
  t.is(Math.round(limits.room * 100), 67);
  for (let i = 0; i < 30; i++) limits.add({ ...IDLE, load: 1 });
  t.is(limits.full, 'load 100 % of at most 90 %');
  t.is(limits.room, 0);
  for (let i = 0; i < 30; i++) limits.add({ ...IDLE, load: 0.85 });
  t.is(limits.full, 'load 85 % of at most 90 %');
  for (let i = 0; i < 30; i++) limits.add({ ...IDLE, load: 0.8 });
  t.is(limits.full, undefined);
  for (let i = 0; i < 30; i++) limits.add({ ...IDLE, load: 0.85 });
  t.is(limits.full, undefined);
});

test('viewers and what is sent fill a node too; all that it has reached is named, and the scarcest is its room', (t) => {
  const limits = new NodeLimits({ load: 90, bitrate: 10e6, viewers: 200 });
  limits.add({ ...IDLE, viewers: 150 });
  t.is(limits.room, 0.25);
  limits.add({ ...IDLE, viewers: 200 });
  t.is(limits.full, '200 viewers of at most 200');
  for (let i = 0; i < 30; i++) limits.add({ load: 0.1, bitrate: 12e6, viewers: 250 });
  t.is(limits.full, '12.0 Mbit/s sent of at most 10.0, 250 viewers of at most 200');
  t.is(limits.room, 0);
  for (let i = 0; i < 30; i++) limits.add({ ...IDLE, viewers: 20 });
  t.is(limits.full, undefined);
  t.is(Math.round(limits.room * 100), 90);
});
