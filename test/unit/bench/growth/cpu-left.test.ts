import test from 'ava';
import { exhausted } from '../../../bench/growth/cpu-left.ts';

const threads = { 'the publisher': 40, 'the event loop of the server': 60 };

test('a machine with idle time, and threads with some left, tell of the server', (t) => {
  t.is(exhausted({ idle: 30, threads }), undefined);
  t.is(exhausted({ idle: 5, threads: { 'the publisher': 89 } }), undefined);
});

test('a load generator without time left does not', (t) => {
  t.is(exhausted({ idle: 30, threads: { ...threads, 'the publisher': 97.4 } }), 'the publisher took 97 % of a core');
});

test('nor does a server whose event loop is full', (t) => {
  const full = { ...threads, 'the event loop of the server': 90 };
  t.is(exhausted({ idle: 30, threads: full }), 'the event loop of the server took 90 % of a core');
});

test('nor does a machine that others keep busy', (t) => {
  t.is(exhausted({ idle: 1.6, threads }), '2 % of the machine was idle');
});
