import test from 'ava';
import type { Static } from 'typebox';
import type * as Answers from '../../../../src/web/pages/answers.ts';
import type { MultiplexChannel } from '../../../../src/api/multiplex-channel.ts';
import type { PushTask } from '../../../../src/api/requests/push-request.ts';
import type { ChannelRow } from '../../../../src/api/routes/channels.ts';
import type { NodeInfo } from '../../../../src/api/routes/nodes.ts';
import type { LoggedEvent } from '../../../../src/api/routes/overview.ts';
import type { ReadOnlyLink } from '../../../../src/api/routes/read-only-links.ts';
import type { RecordingPage } from '../../../../src/api/routes/recordings.ts';
import type { RecordInfo } from '../../../../src/api/routes/records.ts';
import type { ScheduledChannel } from '../../../../src/api/scheduled-channel.ts';
import type { QualitySummary } from '../../../../src/quality/summary.ts';
import type { SessionSummary } from '../../../../src/stats/session-summary.ts';
import type { StreamSummary } from '../../../../src/stats/stream-summary.ts';
import { loadAssets } from '../../../../src/web/assets.ts';
import type { PublishPlaces } from '../../../../src/web/publish-places.ts';
import type { StreamList } from '../../../../src/web/streams.ts';

/** Does not compile unless each answer has the fields that the pages read, of their types. */
type Read<Page, _Answer extends Page> = Page;
export type Checked = [
  Read<Answers.StreamList, StreamList>,
  Read<Answers.PublishPlaces, PublishPlaces & { here: boolean }>,
  Read<Answers.StreamSummary, StreamSummary>,
  Read<Answers.SessionSummary, SessionSummary>,
  Read<Answers.QualitySummary, QualitySummary>,
  Read<Answers.NodeInfo, NodeInfo>,
  Read<Answers.LoggedEvent, LoggedEvent>,
  Read<Answers.ChannelRow, ChannelRow>,
  Read<Answers.ScheduledChannel, Static<typeof ScheduledChannel>>,
  Read<Answers.MultiplexChannel, Static<typeof MultiplexChannel>>,
  Read<Answers.RecordTask, RecordInfo>,
  Read<Answers.RecordedPage, RecordingPage>,
  Read<Answers.PushTask, Static<typeof PushTask>>,
  Read<Answers.ReadOnlyLink, ReadOnlyLink>,
];

test('files for the type check of the pages are not served', async (t) => {
  const { files } = await loadAssets();
  t.true(files.has('common.js'));
  t.deepEqual(
    [...files.keys()].filter((name) => !/\.(?:css|js|svg)$/.test(name)),
    [],
  );
});
