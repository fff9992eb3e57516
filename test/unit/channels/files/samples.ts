/** A schedule with everything in it. */
export const SCHEDULE = `<?xml version="1.0" encoding="UTF-8"?>
<Schedule>
  <Stream>
    <Name>tv1</Name>
    <BypassTranscoder>false</BypassTranscoder>
    <VideoTrack>true</VideoTrack>
    <AudioTrack>true</AudioTrack>
    <AudioMap>
      <Item>
        <Name>English</Name>
        <Language>en</Language>
        <Characteristics>public.accessibility.describes-video</Characteristics>
      </Item>
      <Item name="Korean" language="kr"/>
    </AudioMap>
    <ErrorToleranceDurationMs>1000</ErrorToleranceDurationMs>
  </Stream>
  <FallbackProgram>
    <Item url="file://hevc.mov"/>
    <Item url="file://avc.mov" start="0" duration="60000"/>
  </FallbackProgram>
  <Program name="2" scheduled="2999-03-14T15:10:0.0+09:00" repeat="true">
    <Item url="file://sample.mp4" start="0" duration="60000"/>
    <Item url="stream://default/app/stream1" duration="500" fallbackOnErr="false" forwardData="true"/>
    <Item url="file://sub/a%20b.mp4" start="60000" duration="-1"/>
  </Program>
  <Program name="1" scheduled="2998-09-27T13:21:15.123+09:00">
    <Item url="stream://default/app/stream1" duration="60000"/>
  </Program>
</Schedule>
`;

export const MULTIPLEX = `<?xml version="1.0" encoding="UTF-8"?>
<Multiplex>
  <OutputStream>
    <Name>stream</Name>
  </OutputStream>
  <SourceStreams>
    <SourceStream>
      <Name>tv1</Name>
      <Url>stream://default/app/tv1</Url>
      <TrackMap>
        <Track>
          <SourceTrackName>bypass_video</SourceTrackName>
          <NewTrackName>tv1_video</NewTrackName>
          <BitrateConf>5000000</BitrateConf>
          <FramerateConf>29.97</FramerateConf>
        </Track>
        <Track>
          <SourceTrackName>bypass_audio</SourceTrackName>
          <NewTrackName>tv1_audio</NewTrackName>
          <AudioIndex>1</AudioIndex>
          <PublicName>Main</PublicName>
          <Language>en</Language>
          <Characteristics>public.main</Characteristics>
        </Track>
      </TrackMap>
    </SourceStream>
    <SourceStream>
      <Name>tv2</Name>
      <Url>stream://default/app/tv2</Url>
      <TrackMap>
        <Track>
          <SourceTrackName>bypass_video</SourceTrackName>
          <NewTrackName>tv2_video</NewTrackName>
        </Track>
      </TrackMap>
    </SourceStream>
  </SourceStreams>
  <Playlists>
    <Playlist>
      <Name>LLHLS ABR</Name>
      <FileName>abr</FileName>
      <Options>
        <WebRtcAutoAbr>true</WebRtcAutoAbr>
        <HLSChunklistPathDepth>0</HLSChunklistPathDepth>
        <EnableTsPackaging>true</EnableTsPackaging>
      </Options>
      <Rendition>
        <Name>1080p</Name>
        <Video>tv1_video</Video>
        <Audio>tv1_audio</Audio>
      </Rendition>
      <Rendition>
        <Name>720p</Name>
        <Video>tv2_video</Video>
        <Audio>tv1_audio</Audio>
      </Rendition>
    </Playlist>
  </Playlists>
</Multiplex>
`;
