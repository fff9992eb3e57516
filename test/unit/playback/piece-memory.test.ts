import test from 'ava';
import { PIECE_BYTES, pieceMemory } from '../../../src/playback/piece-memory.ts';

test('memory that was given back is used again, once', (t) => {
  const one = pieceMemory.take();
  t.is(one.length, PIECE_BYTES);
  pieceMemory.give(one.subarray(0, 10));
  pieceMemory.give(one);
  const again = pieceMemory.take();
  t.is(again.buffer, one.buffer);
  t.is(again.length, PIECE_BYTES);
  t.not(pieceMemory.take().buffer, one.buffer);
});

test('memory of others is left alone', (t) => {
  const other = Buffer.allocUnsafeSlow(PIECE_BYTES);
  pieceMemory.give(other);
  t.not(pieceMemory.take().buffer, other.buffer);
});

test('no more is kept than pieces for all clips', (t) => {
  const pieces = Array.from({ length: 100 }, () => pieceMemory.take());
  for (const piece of pieces) pieceMemory.give(piece);
  const kept = new Set(pieces.map(({ buffer }) => buffer));
  const taken = Array.from({ length: 100 }, () => pieceMemory.take());
  t.is(taken.filter(({ buffer }) => kept.has(buffer)).length, 32);
});
