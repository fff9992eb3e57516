import { rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { launchBrowser } from '../support/hls/browser.ts';
import { openFinished, openRecordings } from '../support/recording/finished.ts';
import { openConsole, showView, signIn } from '../support/server/console.ts';

const browser = await launchBrowser();
test.after.always(() => browser.close());

const HOUR = 3_600_000;
/** Noon of the day that these tests look at, in the time zone that they run in. */
const NOON = new Date(2026, 2, 5, 12).getTime();
const DAY = '2026-03-05';
const ROWS = 'tbody tr';

async function open(t: ExecutionContext, width = 1280, more: Parameters<typeof openConsole>[2] = {}) {
  const node = openFinished(t);
  const { page, errors } = await openConsole(t, browser, { width, recordings: openRecordings(node.folder), ...more });
  const finish = (time: number, more: Parameters<typeof node.finish>[1] = {}) =>
    node.finish(time, { vhost: 'default', app: 'app', ...more });
  await signIn(page);
  const show = async (day = DAY) => {
    await showView(page, 'recorded');
    await page.getByLabel('Day', { exact: true }).fill(day);
  };
  const streams = () => page.locator(`${ROWS} td:nth-child(2)`).allTextContents();
  return { ...node, page, errors, finish, show, streams };
}

test('the files of a day are bars on its time line, and rows with what is known of them', async (t) => {
  const { page, errors, finish, show, streams } = await open(t);
  const name = '<img src=x onerror="window.hit=1">';
  await finish(NOON - 6 * HOUR, {
    stream: name,
    finishTime: NOON - 3 * HOUR,
    recordTime: 3 * HOUR,
    recordBytes: 1.5e9,
  });
  await finish(NOON, { stream: 'news', finishTime: NOON + 6 * HOUR, recordTime: 6 * HOUR });
  await finish(NOON - 13 * HOUR, { stream: 'news', finishTime: NOON - 11 * HOUR });
  await finish(NOON + 20 * HOUR, { stream: 'another day' });
  await show();
  await page.locator('.day-bar').nth(2).waitFor();
  t.deepEqual(await page.locator('.day-name').allTextContents(), [name, 'news']);
  const bars = await page
    .locator('.day-bar')
    .evaluateAll((all) =>
      (all as unknown as { style: { left: string; width: string } }[]).map(({ style }) =>
        [style.left, style.width].map((text) => Number.parseFloat(text)),
      ),
    );
  t.deepEqual(bars, [
    [25, 12.5],
    [0, 4.167],
    [50, 25],
  ]);
  t.deepEqual(await streams(), ['news', name, 'news']);
  const row = page.locator(ROWS).nth(1);
  t.regex(await row.innerText(), /3 h 0 min\s+\S* ?[kM]B\s+–\s+Delete\s+task/);
  t.is(await page.evaluate(`'hit' in window`), false);
  await page.getByRole('button', { name: 'Day after' }).click();
  await page.getByRole('cell', { name: 'another day' }).waitFor();
  t.deepEqual(await streams(), ['another day']);
  await page.getByLabel('Day', { exact: true }).fill('');
  await page.getByRole('cell', { name: 'news' }).nth(1).waitFor();
  await page.locator(ROWS).nth(3).waitFor();
  t.is(await page.locator(ROWS).count(), 4);
  t.true(await page.locator('.day').isHidden());
  t.deepEqual(errors, []);
});

test('files are filtered by stream and recording, and turned page by page; a bar leads to its row', async (t) => {
  const { page, errors, finish, show, streams } = await open(t);
  for (let at = 0; at < 120; at++)
    await finish(NOON + at * 1000, { stream: `s${at % 2}`, id: at === 77 ? 'mine' : 'task', pathBelow: `${at}.ts` });
  await show();
  await page.getByText('Page 1').waitFor();
  t.is(await page.locator(ROWS).count(), 50);
  for (const number of [2, 3]) {
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText(`Page ${number}`).waitFor();
  }
  t.is(await page.locator(ROWS).count(), 20);
  t.true(await page.getByRole('button', { name: 'Next' }).isDisabled());
  await page.getByRole('button', { name: 'Previous' }).click();
  await page.getByText('Page 2').waitFor();
  await page.getByLabel('Stream').fill('s1');
  await page.getByLabel('Stream').press('Enter');
  await page.getByText('Page 1').waitFor();
  t.deepEqual(new Set(await streams()), new Set(['s1']));
  await page.locator('.day-bar').nth(59).waitFor();
  await page.locator('.day-bar').nth(59).dispatchEvent('click');
  await page.getByText('Page 2').waitFor();
  t.is(await page.locator(ROWS).count(), 1);
  await page.getByRole('cell', { name: '119.ts' }).waitFor();
  await page.getByLabel('Recording', { exact: true }).fill('mine');
  await page.getByLabel('Recording', { exact: true }).press('Enter');
  await page.getByRole('cell', { name: '77.ts' }).waitFor();
  t.is(await page.locator(ROWS).count(), 1);
  await page.getByLabel('Stream').fill('none');
  await page.getByLabel('Stream').press('Enter');
  await page.getByText('There is no such file.').waitFor();
  t.deepEqual(errors, []);
});

test('a file is deleted when the user confirms it, and why it cannot be is shown', async (t) => {
  const { page, errors, root, finish, show } = await open(t);
  await finish(NOON, { pathBelow: 'kept.ts' });
  await finish(NOON + 1000, { pathBelow: 'gone.ts' });
  await truncate(join(root, 'kept.ts'), 1);
  await show();
  const questions: string[] = [];
  let accepts = false;
  page.on('dialog', (dialog) => {
    questions.push(dialog.message());
    void (accepts ? dialog.accept() : dialog.dismiss());
  });
  const remove = (name: string) =>
    page.locator(ROWS, { hasText: name }).getByRole('button', { name: 'Delete' }).click();
  await remove('gone.ts');
  t.is(await page.locator(ROWS).count(), 2);
  accepts = true;
  await remove('kept.ts');
  await page.locator('.said.wrong', { hasText: 'Nothing was deleted of' }).waitFor();
  await remove('gone.ts');
  await page.getByText('gone.ts was deleted').waitFor();
  await page.locator(ROWS, { hasText: 'gone.ts' }).waitFor({ state: 'detached' });
  await page.locator('.day-bar').nth(1).waitFor({ state: 'detached' });
  t.is(questions.length, 3);
  t.regex(questions[0] ?? '', /^Delete gone\.ts on \S+\? What was uploaded stays in its bucket\.$/);
  await rm(root, { recursive: true });
  t.deepEqual(errors, []);
});

test('the recorded files fit a telephone', async (t) => {
  const { page, errors, finish, show } = await open(t, 390);
  await finish(NOON, { stream: 'a_name_without_a_space_that_is_longer_than_the_screen_of_any_phone' });
  await show();
  await page.locator('.day-bar').waitFor();
  t.true(await page.evaluate('document.documentElement.scrollWidth <= innerWidth'));
  t.deepEqual(errors, []);
});

test('files of an application with Playback are played and saved at the address of a node', async (t) => {
  const { page, errors, index, finish, show } = await open(t, 1280, { publishers: { playback: {} } });
  const names = { vhost: 'default', app: 'app' };
  const upload = { state: 'uploaded', bucket: 'b', key: 'k', url: 'http://s3/b/k' } as const;
  const mp4 = await finish(NOON, { stream: 'a b', pathBelow: 'a.mp4', recordTime: 1500 });
  const stored = await finish(NOON + 1000, { pathBelow: 'stored.mp4' });
  await index.note(names, stored, upload, false);
  const lost = await finish(NOON + 2000, { pathBelow: 'lost.mp4' });
  await index.note(names, lost, { state: 'failed' }, false);
  await finish(NOON + 3000, { pathBelow: 'other.webm' });
  const [video, audio] = [
    { type: 'video', codec: 'H264' },
    { type: 'audio', codec: 'AC3' },
  ];
  const ts = await finish(NOON + 4000, { pathBelow: 'a.ts', tracks: [video, audio] });
  await finish(NOON + 5000, { pathBelow: 'unknown.ts' });
  await finish(NOON + 6000, { pathBelow: 'refused.ts', tracks: [audio] });
  const away = await finish(NOON + 7000, { pathBelow: 'stored.ts', tracks: [video] });
  await index.note(names, away, upload, false);
  await show();
  const linksOf = (file: string) =>
    page
      .locator(ROWS, { hasText: file })
      .getByRole('link')
      .evaluateAll((all) => (all as unknown as { href: string }[]).map(({ href }) => href));
  await page.getByRole('link', { name: 'Play a.mp4' }).waitFor();
  const urlOf = (stream: string, start: number, duration: number, id: string): string => {
    const clip = { start: new Date(start).toISOString(), duration: `${duration}`, format: 'mp4', id };
    return `http://kiln.example:3333/app/${stream}/get?${new URLSearchParams(clip)}`;
  };
  for (const [file, url] of [
    ['a.mp4', urlOf('a%20b', NOON, 3, mp4)],
    ['a.ts', urlOf('s', NOON + 4000, 2, ts)],
  ] as const)
    t.deepEqual(await linksOf(file), [url, `${url}&download`]);
  for (const file of ['stored.mp4', 'unknown.ts']) t.is((await linksOf(file)).length, 2);
  for (const file of ['lost.mp4', 'other.webm', 'refused.ts', 'stored.ts']) t.deepEqual(await linksOf(file), []);
  t.deepEqual(errors, []);
});

test('files of an application without Playback, or of a node without its ports, have no links', async (t) => {
  const without = await open(t);
  const noPorts = { publishers: { playback: {} }, addresses: { llhls: [], hls: [] } };
  for (const { page, finish, show } of [without, await open(t, 1280, noPorts)]) {
    await finish(NOON, { pathBelow: 'a.mp4' });
    await show();
    await page.locator(ROWS, { hasText: 'a.mp4' }).waitFor();
    t.is(await page.locator(ROWS).getByRole('link').count(), 0);
  }
});
