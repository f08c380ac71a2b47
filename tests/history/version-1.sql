PRAGMA application_id = 1164202864;
CREATE TABLE about (identity TEXT NOT NULL);
INSERT INTO about VALUES (lower(hex(randomblob(16))));
CREATE TABLE conversations (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        title TEXT NOT NULL,
        folder TEXT NOT NULL,
        model TEXT NOT NULL,
        persona TEXT NOT NULL,
        head INTEGER,
        created_at REAL NOT NULL,
        updated_at REAL NOT NULL,
        deleted_at REAL
    );
CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        conversation INTEGER NOT NULL REFERENCES conversations(id),
        parent INTEGER,
        role TEXT NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
        content TEXT NOT NULL,
        complete INTEGER NOT NULL,
        model TEXT NOT NULL,
        stats TEXT NOT NULL,
        created_at REAL NOT NULL
    );
CREATE INDEX messages_by_conversation ON messages(conversation, role);
CREATE INDEX messages_by_parent ON messages(parent);
CREATE VIRTUAL TABLE message_words USING fts5(content, content='messages', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER message_words_add AFTER INSERT ON messages BEGIN INSERT INTO message_words(rowid, content) VALUES (new.id, new.content); END;
CREATE TRIGGER message_words_remove AFTER DELETE ON messages BEGIN INSERT INTO message_words(message_words, rowid, content) VALUES ('delete', old.id, old.content); END;
CREATE TRIGGER message_words_change AFTER UPDATE OF content ON messages BEGIN INSERT INTO message_words(message_words, rowid, content) VALUES ('delete', old.id, old.content); INSERT INTO message_words(rowid, content) VALUES (new.id, new.content); END;
CREATE VIRTUAL TABLE title_words USING fts5(title, content='conversations', content_rowid='id', tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER title_words_add AFTER INSERT ON conversations BEGIN INSERT INTO title_words(rowid, title) VALUES (new.id, new.title); END;
CREATE TRIGGER title_words_remove AFTER DELETE ON conversations BEGIN INSERT INTO title_words(title_words, rowid, title) VALUES ('delete', old.id, old.title); END;
CREATE TRIGGER title_words_change AFTER UPDATE OF title ON conversations BEGIN INSERT INTO title_words(title_words, rowid, title) VALUES ('delete', old.id, old.title); INSERT INTO title_words(rowid, title) VALUES (new.id, new.title); END;
PRAGMA user_version = 1;
INSERT INTO conversations VALUES (1, 'What is WAL?', 'databases', 'SmolLM2', '', 2, 1796000000.5, 1796000002.25, NULL);
INSERT INTO messages VALUES (1, 1, NULL, 'user', 'What is WAL?', 1, '', '{}', 1796000000.5);
INSERT INTO messages VALUES (2, 1, 1, 'assistant', 'A log that is written first.', 1, 'SmolLM2', '{"tokens": 7}', 1796000002.25);
