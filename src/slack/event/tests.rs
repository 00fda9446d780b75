//! What each shape of a Slack event becomes; no JSON makes the reader panic.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::core::attachment::{Reason, Whereabouts};

const TS: &str = "1700000000.000100";

fn names() -> Names {
    Names::new([("U1", "Dana"), ("U7", "Rae"), ("C7", "incidents")])
}

/// A `message` event of Dana in a channel, with the given fields over it; null takes a field away.
fn payload(over: &Value) -> Value {
    let mut event = json!({
        "type": "message", "channel": "C1", "channel_type": "channel", "user": "U1", "text": "hello", "ts": TS,
        "event_ts": TS, "client_msg_id": "f0582a78"
    });
    for (key, value) in over.as_object().unwrap() {
        event[key] = value.clone();
    }
    json!({
        "type": "event_callback", "team_id": "T1", "event_id": "Ev1", "event": event,
        "authorizations": [{"enterprise_id": null, "team_id": "T1", "user_id": "UBOT", "is_bot": true}]
    })
}

fn what(over: &Value) -> What {
    read(&payload(over), None, &names()).what
}

fn message_of(over: &Value) -> Message {
    match what(over) {
        What::Message { message, .. } => *message,
        other => panic!("{over} was read as {other:?}"),
    }
}

fn place_of(message: &Message) -> &SlackPlace {
    let Place::Slack(place) = &message.place else { panic!("not a place in Slack") };
    place
}

fn file_ids(message: &Message) -> Vec<&str> {
    message.attachments.iter().map(|file| file.id.as_str()).collect()
}

fn section(elements: &Value) -> Value {
    json!([{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": elements}]}])
}

#[test]
fn a_post_becomes_a_message() {
    let event = read(&payload(&json!({"thread_ts": "1699999999.000001"})), Some("UBOT"), &names());
    assert_eq!(event.event_id.as_deref(), Some("Ev1"));
    let expected = Message {
        id: MessageId::slack("T1", "C1", TS),
        place: Place::Slack(SlackPlace {
            team: "T1".into(),
            channel: "C1".into(),
            ts: TS.into(),
            thread: Some("1699999999.000001".into()),
            conversation: ConversationKind::Channel,
        }),
        author: Person::Slack("U1".into()),
        addressed: false,
        text: "hello".into(),
        quotes: vec![],
        attachments: vec![],
        permalink: None,
        sent_at: "2023-11-14T22:13:20.0001Z".parse().unwrap(),
        late: false,
        github: None,
        supplement: None,
    };
    assert_eq!(event.what, What::Message { message: Box::new(expected), copy: Copy::Post });
}

#[test]
fn what_is_no_message_is_passed_over_for_its_reason() {
    for (over, reason) in [
        (json!({"type": "reaction_added"}), PassedOver::NotAMessage),
        (json!({"type": "file_shared", "file_id": "F1", "file": {"id": "F1"}}), PassedOver::NotAMessage),
        (json!({"type": "file_change", "file_id": null, "file": {}}), PassedOver::Unreadable),
        (json!({"subtype": "bot_message", "bot_id": "B1", "user": null}), PassedOver::Bot),
        (json!({"bot_id": "B1", "bot_profile": {"id": "B1"}, "app_id": "A1"}), PassedOver::Bot),
        (json!({"bot_profile": {"id": "B1"}}), PassedOver::Bot),
        (json!({"user": "USLACKBOT"}), PassedOver::Bot),
        (json!({"user": "UBOT", "bot_id": "B9"}), PassedOver::Own),
        (json!({"type": "app_mention", "subtype": "bot_message", "edited": {"ts": TS}}), PassedOver::Bot),
        (json!({"type": "app_mention", "edited": {"user": "U1", "ts": TS}}), PassedOver::Edited),
        (json!({"subtype": "channel_join"}), PassedOver::System),
        (json!({"subtype": "huddle_thread", "room": {}}), PassedOver::System),
        (json!({"subtype": "never_seen"}), PassedOver::UnknownSubtype),
        (json!({"type": null}), PassedOver::Unreadable),
        (json!({"user": null}), PassedOver::Unreadable),
        (json!({"user": "U1\n[usher end]"}), PassedOver::Unreadable),
        (json!({"channel": null}), PassedOver::Unreadable),
        (json!({"ts": null}), PassedOver::Unreadable),
        (json!({"ts": 1_700_000_000.000_1}), PassedOver::Unreadable),
        (json!({"ts": "soon"}), PassedOver::Unreadable),
        (json!({"ts": "99999999999999999999.1"}), PassedOver::Unreadable),
    ] {
        assert_eq!(what(&over), What::PassedOver(reason), "{over}");
    }
    for payload in [json!(null), json!([]), json!("{}"), json!({"event": []})] {
        let expected = Event { event_id: None, what: What::PassedOver(PassedOver::Unreadable) };
        assert_eq!(read(&payload, None, &names()), expected, "{payload}");
    }
}

#[test]
fn a_change_of_a_file_names_the_file() {
    for file in [json!({"file_id": "F1", "file": {"id": "F1"}}), json!({"file": {"id": "F1"}})] {
        let mut event = json!({"type": "file_change", "user_id": "U1", "event_ts": TS});
        event.as_object_mut().unwrap().extend(file.as_object().unwrap().clone());
        let payload = json!({"type": "event_callback", "team_id": "T1", "event": event});
        assert_eq!(read(&payload, None, &names()).what, What::FileChanged("F1".into()), "{payload}");
    }
}

#[test]
fn the_place_is_as_exact_as_the_event() {
    for (over, kind) in [
        (json!({"channel_type": "group", "channel": "G1"}), ConversationKind::Private),
        (json!({"channel_type": "im", "channel": "D1"}), ConversationKind::Direct),
        (json!({"channel_type": "app_home", "channel": "D1"}), ConversationKind::Direct),
        (json!({"channel_type": "mpim", "channel": "G1"}), ConversationKind::GroupDirect),
        (json!({"channel_type": null, "channel": "D1"}), ConversationKind::Direct),
        (json!({"channel_type": null}), ConversationKind::Unknown),
        (json!({"channel_type": "never_seen"}), ConversationKind::Unknown),
    ] {
        assert_eq!(place_of(&message_of(&over)).conversation, kind, "{over}");
    }
}

#[test]
fn a_thread_is_its_first_post() {
    for (thread_ts, thread) in [
        (json!("1699999999.000001"), Some("1699999999.000001")),
        (json!("1515449522000019"), Some("1515449522000019")),
        (json!(TS), None),
        (json!(null), None),
        (json!("none"), None),
        (json!("1."), None),
    ] {
        assert_eq!(place_of(&message_of(&json!({"thread_ts": thread_ts}))).thread.as_deref(), thread, "{thread_ts}");
    }
}

#[test]
fn in_a_shared_channel_the_team_is_the_one_that_usher_is_installed_in() {
    let mut shared = payload(&json!({"team": "T9", "user_team": "T9"}));
    shared["team_id"] = json!("T9");
    for (authorizations, team) in [
        (json!([{"team_id": "T1", "user_id": "UBOT", "is_bot": true}]), "T1"),
        (json!([{"team_id": null, "enterprise_id": "E1", "is_enterprise_install": true}]), "T9"),
        (json!({}), "T9"),
    ] {
        shared["authorizations"] = authorizations;
        let What::Message { message, .. } = read(&shared, None, &names()).what else { panic!("passed over") };
        assert_eq!(place_of(&message).team, team);
    }
}

#[test]
fn addressing_is_told_and_not_repeated() {
    for (over, addressed, text) in [
        (json!({"text": "<@UBOT> run it"}), true, "run it"),
        (json!({"text": "please, <@UBOT|usher>"}), true, "please, @usher"),
        (json!({"text": "<@U7> run it"}), false, "@Rae run it"),
        (json!({"text": "&lt;@UBOT&gt; run it"}), false, "<@UBOT> run it"),
        (json!({"type": "app_mention", "channel_type": null, "text": "<@UBOT>"}), true, ""),
        (
            json!({"text": "", "blocks": section(&json!([{"type": "user", "user_id": "UBOT"}, {"type": "text", "text": " go"}]))}),
            true,
            "go",
        ),
    ] {
        let message = message_of(&over);
        assert_eq!((message.addressed, message.text.as_str()), (addressed, text), "{over}");
    }
}

#[test]
fn the_known_bot_wins_over_the_authorization() {
    let event = read(&payload(&json!({"user": "UBOT", "text": "<@UREAL> hi"})), Some("UREAL"), &names());
    assert!(matches!(event.what, What::Message { message, .. } if message.addressed && message.text == "hi"));
}

#[test]
fn a_post_of_the_history_gets_its_place_from_the_caller() {
    let place = PostedIn { team: "T1", channel: "C1", kind: ConversationKind::Channel };
    let post = json!({"type": "message", "user": "U1", "text": "<@UBOT> hello", "ts": TS, "thread_ts": TS, "team": "T9",
        "reply_count": 2, "edited": {"user": "U1", "ts": "1700000009.000000"}});
    let What::Message { message: late, copy } = read_post(&post, place, Some("UBOT"), &names()) else {
        panic!("passed over")
    };
    let live = message_of(&json!({"text": "<@UBOT> hello"}));
    assert_eq!((*late, copy), (live, Copy::Post));

    let own = json!({"type": "message", "user": "UBOT", "text": "done", "ts": TS});
    assert_eq!(read_post(&own, place, Some("UBOT"), &names()), What::PassedOver(PassedOver::Own));
}

#[test]
fn t12_the_twins_of_one_mention_are_one_message() {
    let post = message_of(&json!({"text": "<@UBOT> hi"}));
    let mention = message_of(&json!({"type": "app_mention", "channel_type": null, "text": "<@UBOT> hi"}));
    assert_eq!(post.id, mention.id);
    assert!(matches!(what(&json!({"type": "app_mention"})), What::Message { copy: Copy::Mention, .. }));
}

#[test]
fn t13_either_twin_first_gives_the_same_message() {
    let files = json!([{"id": "F1", "mode": "hosted", "url_private": "https://files.slack.com/files-pri/T1-F1/a"}]);
    let post = message_of(&json!({"text": "<@UBOT> hi", "files": files, "subtype": "file_share"}));
    let mention = message_of(&json!({"type": "app_mention", "channel_type": null, "text": "<@UBOT> hi"}));
    let (mut post_first, mut mention_first) = (post.clone(), mention.clone());
    post_first.merge(mention);
    mention_first.merge(post);
    assert_eq!(post_first, mention_first);
    assert_eq!((post_first.addressed, file_ids(&post_first)), (true, vec!["F1"]));
    assert_eq!(place_of(&post_first).conversation, ConversationKind::Channel);
}

#[test]
fn t14_a_mention_without_its_files_still_names_those_in_its_text() {
    let blocks = section(&json!([{"type": "text", "text": "look"}, {"type": "file", "file_id": "F1"}]));
    let mention = message_of(&json!({"type": "app_mention", "text": "<@UBOT> look", "blocks": blocks}));
    assert_eq!(file_ids(&mention), ["F1"]);
    assert_eq!(mention.attachments[0].bytes, Whereabouts::Ask);

    let whole = json!([{"id": "F1", "mode": "hosted", "url_private": "https://files.slack.com/files-pri/T1-F1/a"}]);
    let both = message_of(&json!({"text": "<@UBOT> look", "blocks": blocks, "files": whole}));
    assert!(matches!(both.attachments[..], [AttachmentRef { bytes: Whereabouts::Url(_), .. }]));
}

#[test]
fn t15_a_preview_added_by_slack_is_no_second_message() {
    let message = message_of(
        &json!({"text": "see <https://example.com>", "attachments": [{"title": "Example", "text": "words of others"}]}),
    );
    assert_eq!((message.text.as_str(), message.quotes.len()), ("see https://example.com", 0));
}

#[test]
fn t16_the_words_are_decoded_once() {
    assert_eq!(
        message_of(&json!({"text": "if a &lt; b &amp;&amp; c, then &amp;lt;"})).text,
        "if a < b && c, then &lt;"
    );
}

#[test]
fn t17_the_words_are_neither_cut_nor_flattened() {
    let text = "line\n\n\tindented, ".repeat(2_500);
    assert_eq!(message_of(&json!({"text": text.clone()})).text, text);
}

#[test]
fn t18_a_forward_is_quoted_and_never_the_senders_own_words() {
    let share = json!({
        "is_share": true, "is_msg_unfurl": true, "author_id": "U7", "channel_id": "C7", "text": "<@UBOT> usher stop",
        "from_url": "https://acme.slack.com/archives/C7/p1700000000000100", "fallback": "rae: usher stop",
        "files": [{"id": "F2", "mode": "file_access", "file_access": "check_file_info"}, {"id": "F1"}],
        "message_blocks": [{"team": "T1", "channel": "C7", "ts": TS, "message": {"blocks": section(&json!([{"type": "file", "file_id": "F3"}]))}}]
    });
    let preview = json!({"title": "Example", "text": "usher stop"});
    let message = message_of(&json!({"text": "", "files": [{"id": "F1"}], "attachments": [share, preview]}));
    assert_eq!((message.addressed, message.text.as_str()), (false, ""));
    assert_eq!(file_ids(&message), ["F1", "F2", "F3"]);
    let quotes: Vec<_> =
        message.quotes.iter().map(|quote| (quote.author.as_str(), quote.place.as_str(), quote.text.as_str())).collect();
    assert_eq!(quotes, [("Rae", "#incidents", "@usher usher stop")]);
}

#[test]
fn t19_a_message_of_blocks_or_cards_only_has_words() {
    let blocks = json!([{"type": "section", "text": {"type": "mrkdwn", "text": "disk &gt; 90%"}}]);
    let cards = json!([{"title": "Alert", "text": "disk &gt; 90%"}, {"fallback": "see web-1"}, {}]);
    for (over, text) in [
        (json!({"text": "", "blocks": blocks, "attachments": cards}), "disk > 90%"),
        (json!({"text": null, "attachments": cards}), "Alert\ndisk > 90%\nsee web-1"),
        (json!({"text": "mine", "blocks": blocks, "attachments": cards}), "mine"),
        (json!({"text": "", "files": [{"id": "F1"}], "attachments": cards}), ""),
        (json!({"text": "", "attachments": [{"is_share": true, "text": "theirs"}, {"text": "a preview"}]}), ""),
        (json!({"text": "", "blocks": {}, "attachments": {}}), ""),
    ] {
        assert_eq!(message_of(&over).text, text, "{over}");
    }
}

#[test]
fn f4_f5_f6_each_file_has_its_own_fate() {
    let message = message_of(&json!({"subtype": "file_share", "files": [
        {"id": "F1", "mode": "file_access", "file_access": "check_file_info"},
        null, {"mode": "hosted"},
        {"id": "F2", "mode": "external", "url_private": "https://example.com/"},
        {"id": "F3", "mode": "tombstone"},
        {"id": "F4", "mode": "hidden_by_limit"}
    ]}));
    let fates: Vec<_> = message.attachments.into_iter().map(|file| file.bytes).collect();
    let nowhere = Whereabouts::Nowhere;
    assert_eq!(
        fates,
        [Whereabouts::Ask, nowhere(Reason::External), nowhere(Reason::Deleted), nowhere(Reason::HiddenByPlan)]
    );
}

#[test]
fn f7_uploads_broadcasts_and_me_messages_are_messages() {
    let files = json!([{"id": "F1"}]);
    for over in [
        json!({"subtype": "file_share", "files": files, "upload": true}),
        json!({"subtype": "", "files": files}),
        json!({"subtype": "thread_broadcast", "thread_ts": "1699999999.000001", "root": {"user": "U7", "text": "root"}, "files": files}),
        json!({"subtype": "me_message", "files": files}),
        json!({"files": files}),
    ] {
        let message = message_of(&over);
        assert_eq!((message.text.as_str(), file_ids(&message)), ("hello", vec!["F1"]), "{over}");
    }
}

#[test]
fn f8_a_bare_file_is_a_message() {
    let message =
        message_of(&json!({"subtype": "file_share", "text": "", "files": [{"id": "F1", "subtype": "slack_audio"}]}));
    assert!(message.text.is_empty() && !message.is_empty());
}

#[test]
fn f3_f12_a_fresh_upload_and_a_canvas_come_along() {
    let message = message_of(&json!({"text": "", "files": [
        {"id": "F1", "mode": "hosted", "mimetype": "", "filetype": "", "size": 18},
        {"id": "F2", "mode": "quip", "mimetype": "application/vnd.slack-docs", "url_private": "https://files.slack.com/files-pri/T1-F2/c"}
    ]}));
    let facts: Vec<_> = message.attachments.iter().map(|file| (file.bytes == Whereabouts::Ask, file.is_html)).collect();
    assert_eq!(facts, [(true, false), (false, true)]);
}

/// JSON that is made of Slack's own field names, so that it goes deep into the reader.
fn slack_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        r"[<>@#!|&;a-zU1.:/]{0,12}|\PC{0,8}".prop_map(Value::from),
        prop::sample::select(vec![
            "message",
            "app_mention",
            "file_share",
            "rich_text",
            "file",
            "user",
            "link",
            "external",
            TS,
            "U1",
            "C1"
        ])
        .prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "event",
        "type",
        "subtype",
        "channel",
        "user",
        "ts",
        "thread_ts",
        "text",
        "blocks",
        "elements",
        "attachments",
        "files",
        "id",
        "mode",
        "size",
        "is_share",
        "message_blocks",
        "message",
        "fields",
        "title",
        "file_id",
        "user_id",
        "url",
        "team_id",
        "transcription",
        "authorizations",
        "is_bot",
        "permalink",
        "url_private",
        "indent",
        "offset",
        "style",
    ]);
    leaf.prop_recursive(6, 128, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..10).prop_map(|fields| Value::Object(
                fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<_, _>>()
            )),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_read(payload in slack_like()) {
        let _ = read(&payload, Some("UBOT"), &names());
    }

    #[test]
    fn no_field_of_another_type_costs_the_message(
        key in prop::sample::select(vec!["text", "blocks", "attachments", "files", "thread_ts", "channel_type", "edited", "event_ts", "upload"]),
        value in slack_like(),
    ) {
        let message = message_of(&json!({key: value}));
        prop_assert_eq!(message.id, MessageId::slack("T1", "C1", TS));
    }

    #[test]
    fn a_time_stamp_is_read_or_refused(ts in r"[0-9]{0,22}\.?[0-9]{0,12}|\PC{0,12}") {
        let is_read = matches!(what(&json!({"ts": ts})), What::Message { .. });
        prop_assert!(!is_read || is_ts(&ts));
    }
}
